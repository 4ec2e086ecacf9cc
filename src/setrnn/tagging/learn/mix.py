"""Mix trained models: one label vocabulary, weights fitted per rule on documents with labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from setrnn.config import MemberSettings, MixtureConfig
from setrnn.data.example import Hashes, join_hashes
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary, distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import join_encoders, join_rows, split_rows
from setrnn.data.text.words import TextEncoder
from setrnn.errors import ConfigError, DataError, list_some
from setrnn.models.card import note_columns, note_training
from setrnn.models.folder import check_model_place
from setrnn.progress import OnProgress, ignore_progress, log
from setrnn.systems.candidates import Floats, Ints
from setrnn.systems.mixture import MixtureSystem, Weights, relabel
from setrnn.tagging.documents import Batch, Documents, LabelledDocuments, keep_complete, open_unseen
from setrnn.tagging.learn.mixture_weights import (
    BEST,
    LEAST_TO_FIT,
    can_fit,
    collect,
    fit_rules,
    mean_log_likelihood,
)
from setrnn.tagging.tagger import Tagger, open_model
from setrnn.tagging.trust import Calibration
from setrnn.tagging.trust.calibrate import calibrate_or_warn, find_calibration

NAMES_SHOWN = 5


def mix(
    models: Sequence[str | Path | Tagger],
    data: Documents,
    *,
    split: str | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    allow_training_documents: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Make one model of several: p(set) is the weighted mean of the members' p(set).

    The weights are fitted on documents that no member was trained on, for each prediction rule: to
    its measure, or to the likelihood for rule `set`. On these documents, the mixture is at least
    as good as its best member by every rule. Its `notes["mixture"]` has the weights and the
    scores. It predicts by the rule of its members, if they all have the same. Like `train`, `mix`
    also calibrates the model on the documents, after it is saved.

    Args:
        models: model folders or taggers, with the same labels. Their tokenizers may differ.
        data: documents with labels: a file, a folder, a prepared folder, "newsroom", or examples.
            A prepared folder is possible if its vocabulary is that of all members.
        split: the part of the data; valid, or the only one, if not given. Of data without a valid
            part that the models were trained on, it is the valid part that was cut off then.
        out: the model folder to write.
        device: where networks that are loaded from folders compute: auto, cpu, cuda or mps.
        allow_training_documents: whether to fit, with a warning, on documents that a model was
            trained on; otherwise they raise DataError.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> models = [setrnn.train("newsroom", method) for method in ("br", "br-support")]
        >>> tagger = setrnn.mix(models, "newsroom")
        >>> tagger
        <Tagger mixture: 65 labels, calibrated>
        >>> tagger.tag(["The ski race was cancelled because of the storm."], rule="f1")[0].labels
        ('weather', 'storm')
    """
    members = _open(models, device)
    place = None if out is None else Path(out)
    if place is not None:
        check_model_place(place)
    every = join([*members.values()])
    documents = open_unseen(every, data, split, on_progress, allow_training_documents)
    n_labels = _count_labels(documents.batches(every))
    if not can_fit(n_labels):
        raise DataError(
            f"The weights of a mixture need {LEAST_TO_FIT} documents with labels or more, got "
            f"{np.count_nonzero(n_labels):,}. Give documents that no member was trained on, with "
            "all their labels."
        )
    return mix_members(members, documents, find_calibration(place), on_progress, out=place)


def mix_members(
    members: Mapping[str, Tagger],
    documents: LabelledDocuments,
    before: Calibration | None = None,
    on_progress: OnProgress = ignore_progress,
    weights: Weights | None = None,
    out: Path | None = None,
) -> Tagger:
    """Mix taggers, by their names, and calibrate the mixture, after it is saved in `out`.

    The mixture is calibrated to the targets of the calibration `before`. With too few complete
    documents, it has the given weights, or equal ones.
    """
    every = join([*members.values()], weights)
    batches = list(documents.batches(every))
    n_labels = _count_labels(batches)
    if can_fit(n_labels):
        mixture, documents = _fit_mixture(every, members, documents, batches, on_progress)
    else:
        if len(members) > 1:
            log.info(
                f"{'The members count the same' if weights is None else 'The weights stay'}: "
                f"{LEAST_TO_FIT} documents with all their labels are needed to weigh the members, "
                f"and there are {len(n_labels)}."
            )
        mixture = replace(every, notes=_note_data([*members.values()]))
        documents = replace(documents, batches=lambda _: iter(batches))
    if out is not None:
        mixture = mixture.saved_to(out)
    return calibrate_or_warn(mixture, documents, out, before, on_progress)


def _count_labels(batches: Iterable[Batch]) -> Ints:
    """Return the number of labels of each complete document, (n,)."""
    return np.array([len(each) for batch in keep_complete(batches) for each in batch.labels])


def _fit_mixture(
    every: Tagger,
    members: Mapping[str, Tagger],
    documents: LabelledDocuments,
    batches: Sequence[Batch],
    on_progress: OnProgress,
) -> tuple[Tagger, LabelledDocuments]:
    """Return the mixture, not calibrated, and the documents in the tokens of its members.

    Args:
        every: the members with any weights.
        members: the same by their names.
        documents: documents that no member was trained on.
        batches: the same in the tokens of all members.
        on_progress: called with the progress.
    """
    names, taggers = list(members), list(members.values())
    outputs = collect(every, list(keep_complete(batches)), on_progress)
    default, rules = fit_rules(outputs)
    is_used = np.any([default > 0, *(each.weights > 0 for each in rules.values())], axis=0)
    kept = np.flatnonzero(is_used).tolist()
    weights = Weights(default[kept], {rule: each.weights[kept] for rule, each in rules.items()})
    log_probs = outputs.true_log_probs
    left_out = [name for number, name in enumerate(names) if number not in kept]
    described = {
        "members": names,
        "left_out": left_out,
        "n_documents": len(outputs.is_label),
        "weights": _round(default),
        "log_likelihood": {
            "members": [mean_log_likelihood(log_probs, each) for each in np.eye(len(names))],
            "mixture": mean_log_likelihood(log_probs, default),
        },
        "rules": {
            rule: {**asdict(each), "weights": _round(each.weights)} for rule, each in rules.items()
        },
        "split": documents.split,
    }
    notes = {**_note_data(taggers), "mixture": described}
    mixture = replace(join([taggers[number] for number in kept], weights), notes=notes)
    own_rules = {each.rule for each in taggers}
    if len(own_rules) == 1:
        mixture = replace(mixture, rule=own_rules.pop())
    if left_out:
        log.info(f"Left out, because no rule gives them weight: {', '.join(left_out)}.")
    for rule, each in rules.items():
        if each.chosen == BEST:
            best = names[int(np.argmax(each.weights))]
            log.info(f"Rule {rule} uses {best} alone: no other weights were better.")
    chosen = _choose_tokens(every, kept, batches)
    n_documents = sum(len(batch.labels) for batch in chosen)
    read = replace(documents, batches=lambda _: iter(chosen), n_documents=n_documents)
    return mixture, read


def _round(weights: Floats) -> list[float]:
    return [round(float(each), 4) for each in weights]


def _note_data(members: Sequence[Tagger]) -> dict[str, Any]:
    n_documents = max(each.notes.get("n_documents", 0) for each in members)
    of_data = {"data": members[0].notes.get("data"), **note_columns(members[0].notes)}
    return {**of_data, "n_documents": n_documents, **note_training()}


def _open(models: Sequence[str | Path | Tagger], device: str) -> dict[str, Tagger]:
    """Load the models; return them by distinct names."""
    if isinstance(models, str | Path | Tagger) or not models:
        raise ConfigError("models must be a list of model folders or taggers.")
    members: dict[str, Tagger] = {}
    for model in models:
        name, tagger = open_model(model, device)
        if tagger.members:
            raise ConfigError(f"{name} is a mixture. Give its members instead.")
        names = chain([name], (f"{name} ({number})" for number in count(2)))
        members[next(each for each in names if each not in members)] = tagger
    _check_labels(members)
    return members


def _check_labels(members: Mapping[str, Tagger]) -> None:
    """Raise ConfigError if the models do not have the same labels."""
    first_name, *_ = members
    first = set(members[first_name].labels.names)
    for name, tagger in members.items():
        own = set(tagger.labels.names)
        if own == first:
            continue
        parts = [
            f"only {who} has {list_names(only)}"
            for who, only in ((first_name, first - own), (name, own - first))
            if only
        ]
        raise ConfigError(
            f"A mixture needs models with the same labels: {' and '.join(parts)}. Train them on "
            "the same data."
        )


def list_names(names: Iterable[str]) -> str:
    """Write the first few names, and how many more there are."""
    return list_some([f"'{name:.40}'" for name in sorted(names)], NAMES_SHOWN)


def join(members: Sequence[Tagger], weights: Weights | None = None) -> Tagger:
    """Return the mixture of taggers with the same labels; with equal weights if none are given."""
    encoders: list[TextEncoder] = []
    settings, systems = [], []
    labels = members[0].labels
    for member in members:
        same = [n for n, each in enumerate(encoders) if each.is_same(member.encoder)]
        if not same:
            encoders.append(member.encoder)
        number = same[0] if same else len(encoders) - 1
        settings.append(MemberSettings(member.method, number, member.config))
        own_ids = np.array([member.labels.index[name] for name in labels.names], dtype=np.int32)
        systems.append(relabel(member.system, own_ids))
    if weights is None:
        weights = Weights(np.full(len(members), 1 / len(members)))
    parts = tuple(each.tokenizer for each in settings)
    return Tagger(
        "mixture",
        MixtureConfig(text=members[0].config.text, members=tuple(settings)),
        join_encoders(encoders),
        labels,
        MixtureSystem(tuple(systems), parts, weights, len(labels)),
        seen_sets=join_seen_sets(members, labels),
        trained_documents=join_trained(members),
        hierarchy=_join_hierarchies(members),
    )


def _join_hierarchies(members: Sequence[Tagger]) -> Hierarchy | None:
    """Return the hierarchy of the members; raise ConfigError if they have different ones."""
    found = [each.hierarchy for each in members if each.hierarchy is not None]
    if any(each.parents != found[0].parents for each in found):
        raise ConfigError("The models have different hierarchies. Train them with the same one.")
    if not found:
        return None
    return replace(
        found[0],
        closes_labels=any(each.closes_labels for each in found),
        keeps_closed=all(each.keeps_closed for each in found),
    )


def join_trained(models: Sequence[Tagger]) -> Hashes | None:
    """Return the documents that any model was trained on; None if one does not know its own."""
    found = [each.trained_documents for each in models if each.trained_documents is not None]
    return join_hashes(found) if len(found) == len(models) else None


def join_seen_sets(models: Sequence[Tagger], labels: LabelVocabulary) -> Ragged | None:
    """Return the label sets that any model has seen in training; None if one has lost its own."""
    rows: list[Ragged] = []
    for model in models:
        if (seen := model.seen_sets) is None:
            return None
        is_same = model.labels.names == labels.names
        rows.append(seen if is_same else labels.encode(model.labels.sets(seen)))
    return distinct_sets(Ragged.concatenate(rows))[0]


def _choose_tokens(every: Tagger, kept: Sequence[int], batches: Sequence[Batch]) -> list[Batch]:
    """Return the documents for the members that are kept: without the tokens of the others."""
    assert isinstance(every.config, MixtureConfig)
    numbers = list(dict.fromkeys(every.config.members[member].tokenizer for member in kept))
    n_parts = len(every.encoder.parts)
    if len(numbers) == n_parts:
        return list(batches)
    chosen = []
    for batch in batches:
        parts = split_rows(batch.tokens, n_parts)
        wanted = [parts[number] for number in numbers]
        tokens = wanted[0] if len(wanted) == 1 else join_rows(wanted)
        chosen.append(batch._replace(tokens=tokens))
    return chosen
