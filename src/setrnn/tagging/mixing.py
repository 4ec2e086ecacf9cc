"""Mix trained models: one label vocabulary, weights fitted per rule on documents with labels."""

# n documents, I members, L labels, K sets, F folds

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setrnn.config import MemberSettings, MixtureConfig
from setrnn.data.batches import take_rows
from setrnn.data.joint_encoder import join_encoders, join_rows, split_rows
from setrnn.data.labels import LabelVocabulary, distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import ConfigError, DataError
from setrnn.metrics import indicator_matrices
from setrnn.progress import Note, OnProgress, count_up, ignore_progress
from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    Ints,
    LabelSizeProbs,
    pack_labels,
)
from setrnn.systems.mixture import (
    MixtureCandidates,
    MixtureSystem,
    Weights,
    align_tables,
    relabel,
)
from setrnn.systems.rules import MANY_SETS
from setrnn.tagging.calibrating import fit_calibration
from setrnn.tagging.calibration import LEAST_DOCUMENTS
from setrnn.tagging.evaluation import Batch, Documents, LabelledDocuments, open_documents
from setrnn.tagging.mixture_weights import (
    BEST,
    LEAST_IN_SET,
    LEAST_MARGINAL,
    N_FOLDS,
    PREDICT,
    FittedRule,
    Outputs,
    Pairs,
    fit_likelihood,
    fit_rules,
    mean_log_likelihood,
)
from setrnn.tagging.tagger import BATCH, Tagger, load

if TYPE_CHECKING:
    from setrnn.metrics import Indicator

METHOD = "mixture"
LEAST_TO_FIT = 20  # documents
MOST_TO_FIT = 5_000  # documents: the outputs of all members for them are in memory
NAMES_SHOWN = 5


def mix(
    models: Sequence[str | Path | Tagger],
    data: Documents,
    *,
    split: str | None = None,
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Make one model of several: p(set) is the weighted mean of the members' p(set).

    The weights are fitted on documents that no member was trained on, for each prediction rule: to
    its measure, or to the likelihood for rule `set`. On these documents, the mixture is at least
    as good as its best member by every rule. Its `notes["mixture"]` has the weights and the
    scores. Like `train`, `mix` also calibrates the model on the documents.

    Args:
        models: model folders or taggers, with the same labels. Their tokenizers may differ.
        data: documents with labels: a file, a folder, a prepared folder, "newsroom", or examples.
            A prepared folder is possible if its vocabulary is that of all members.
        split: the part of the data; valid, or the only one, if not given.
        device: where networks that are loaded from folders compute: auto, cpu or cuda.
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
    names, members = _open(models, device)
    every = join(members)
    documents = open_documents(data, split, "valid")
    batches = list(documents.batches(every))
    documents.note_skipped(on_progress)
    outputs = collect(every, batches, on_progress)
    fitted = _fit(outputs, on_progress)
    default = fit_likelihood(outputs.true_log_probs)
    is_used = np.any([each.weights > 0 for each in fitted] + [default > 0], axis=0)
    kept = np.flatnonzero(is_used).tolist()
    weights = Weights(default[kept], {each.rule: each.weights[kept] for each in fitted})
    notes = {
        "data": members[0].notes.get("data"),
        "mixture": _describe(names, kept, outputs, default, fitted) | {"split": documents.split},
    }
    mixture = replace(join([members[number] for number in kept], weights), notes=notes)
    for text in _list_notes(names, kept, fitted):
        on_progress(Note(text))
    return _calibrate(mixture, _choose_tokens(every, kept, batches), documents.split, on_progress)


def _open(models: Sequence[str | Path | Tagger], device: str) -> tuple[list[str], list[Tagger]]:
    """Load the models; return their names, which are distinct, and their taggers."""
    if isinstance(models, str | Path | Tagger) or not models:
        raise ConfigError("models must be a list of model folders or taggers.")
    names: list[str] = []
    taggers: list[Tagger] = []
    for model in models:
        tagger = model if isinstance(model, Tagger) else load(model, device)
        name = tagger.method if isinstance(model, Tagger) else Path(model).resolve().name
        if tagger.members:
            raise ConfigError(f"{name} is a mixture. Give its members instead.")
        same = sum(each == name or each.startswith(f"{name} (") for each in names)
        names.append(f"{name} ({same + 1})" if same else name)
        taggers.append(tagger)
    _check_labels(names, taggers)
    return names, taggers


def _check_labels(names: Sequence[str], taggers: Sequence[Tagger]) -> None:
    """Raise ConfigError if the models do not have the same labels."""
    first = set(taggers[0].labels.names)
    for name, tagger in zip(names, taggers, strict=True):
        own = set(tagger.labels.names)
        if own == first:
            continue
        parts = [
            f"only {who} has {_list_names(only)}"
            for who, only in ((names[0], first - own), (name, own - first))
            if only
        ]
        raise ConfigError(
            f"A mixture needs models with the same labels: {' and '.join(parts)}. Train them on "
            "the same data."
        )


def _list_names(names: Iterable[str]) -> str:
    ranked = sorted(names)
    more = f" and {len(ranked) - NAMES_SHOWN:,} more" if len(ranked) > NAMES_SHOWN else ""
    return ", ".join(f"'{name:.40}'" for name in ranked[:NAMES_SHOWN]) + more


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
        METHOD,
        MixtureConfig(text=members[0].config.text, members=tuple(settings)),
        join_encoders(encoders),
        labels,
        MixtureSystem(tuple(systems), parts, weights, len(labels)),
        seen_sets=_join_seen_sets(members, labels),
    )


def _join_seen_sets(members: Sequence[Tagger], labels: LabelVocabulary) -> Ragged | None:
    """Return the label sets that a member has seen in training; None if one does not know its."""
    rows: list[Ragged] = []
    for member in members:
        if member.seen_sets is None:
            return None
        names = member.labels.sets(member.seen_sets)
        rows.append(
            member.seen_sets if member.labels.names == labels.names else labels.encode(names)
        )
    return distinct_sets(Ragged.concatenate(rows))[0]


def collect(
    mixture: Tagger, batches: Sequence[Batch], on_progress: OnProgress = ignore_progress
) -> Outputs:
    """Run all members on documents with labels, once, and keep what the weights are fitted to."""
    tokens = Ragged.concatenate(batch for batch, _ in batches)
    label_sets = [labels for _, names in batches for labels in names]
    if len(label_sets) < LEAST_TO_FIT or not any(label_sets):
        raise DataError(
            f"The weights of a mixture need {LEAST_TO_FIT} documents with labels or more, got "
            f"{sum(map(bool, label_sets)):,}. Give documents that no member was trained on."
        )
    rows = np.linspace(0, len(tokens) - 1, min(MOST_TO_FIT, len(tokens))).round().astype(np.int64)
    fold = np.random.default_rng(0).permutation(len(rows)) % N_FOLDS
    count = count_up("mixing", on_progress, len(rows))
    parts = []
    for start in range(0, len(rows), BATCH):
        some = rows[start : start + BATCH]
        names = [label_sets[row] for row in some]
        parts.append(_Part.of(mixture, take_rows(tokens, some), names, fold[start : start + BATCH]))
        count(len(some))
    truth = indicator_matrices(
        [label_sets[row] for row in rows], [()] * len(rows), mixture.labels.names
    ).truth
    return _Part.join(parts, fold, truth, len(mixture.labels))


@dataclass(frozen=True)
class _Part:
    """The outputs of the members for one batch of documents."""

    true_log_probs: Floats  # (I, m)
    sets: Ids  # (m, K, S)
    set_log_probs: Floats  # (I, m, K)
    pairs: Pairs
    tables: LabelSizeProbs

    @classmethod
    def of(
        cls, mixture: Tagger, tokens: Ragged, names: Sequence[tuple[str, ...]], fold: Ints
    ) -> _Part:
        system, labels = mixture.system, mixture.labels
        assert isinstance(system, MixtureSystem)
        found = system.candidates(tokens, MANY_SETS)
        assert isinstance(found, MixtureCandidates)
        truth = labels.encode(names)
        is_known = truth.lengths == np.array([len(set(each)) for each in names])
        true_sets = pack_labels(truth.padded(min_width=1))[:, None]
        true_log_probs = system.member_log_probs(tokens, true_sets)[:, :, 0]
        true_log_probs = np.where(is_known, true_log_probs, np.nan)
        is_true = np.zeros((len(names), len(labels)), dtype=bool)
        is_true[truth.row_numbers, truth.values] = True
        marginals = [each.marginals(len(labels)) for each in found.found]
        pairs = _list_pairs(marginals, is_true, fold)
        tables = _list_tables([each.label_size_probs(len(labels)) for each in found.found])
        return cls(true_log_probs, found.pool.labels, found.pool.log_probs, pairs, tables)

    @staticmethod
    def join(parts: Sequence[_Part], fold: Ints, truth: Indicator, n_labels: int) -> Outputs:
        """Join the outputs of all batches."""
        starts = np.cumsum([0, *(len(each.sets) for each in parts)])
        pairs = [each.pairs for each in parts]
        I = len(parts[0].true_log_probs)  # noqa: E741 (the number of members)
        return Outputs(
            fold,
            truth,
            n_labels,
            np.concatenate([each.true_log_probs for each in parts], axis=1),
            _stack([each.sets for each in parts], -1),
            np.stack(
                [_stack([each.set_log_probs[i] for each in parts], -np.inf) for i in range(I)]
            ),
            Pairs(
                np.concatenate([each.document + n for each, n in zip(pairs, starts, strict=False)]),
                np.concatenate([each.label for each in pairs]),
                [np.concatenate([each.probs[i] for each in pairs]) for i in range(I)],
                np.concatenate([each.is_true for each in pairs]),
                np.sum([each.rest for each in pairs], axis=0),
            ),
            LabelSizeProbs(
                _stack([each.tables.labels for each in parts], -1),
                np.stack([_stack([each.tables.probs[i] for each in parts], 0) for i in range(I)]),
                np.concatenate([each.tables.empty for each in parts], axis=1),
            ),
        )


def _stack(arrays: Sequence[npt.NDArray[Any]], fill: float) -> npt.NDArray[Any]:
    """Join arrays along the first axis, padded with `fill` along the others."""
    shape = np.max([each.shape[1:] for each in arrays], axis=0)
    padded = [
        np.pad(
            each,
            [(0, 0), *((0, most - own) for most, own in zip(shape, each.shape[1:], strict=True))],
            constant_values=fill,
        )
        for each in arrays
    ]
    return np.concatenate(padded)


def _list_pairs(marginals: Sequence[Floats32], is_true: Bools, fold: Ints) -> Pairs:
    is_kept = is_true | (np.maximum.reduce(list(marginals)) >= LEAST_MARGINAL)
    document, label = np.nonzero(is_kept)
    rest = np.zeros((len(marginals), N_FOLDS, is_true.shape[1]))
    for number, each in enumerate(marginals):
        np.add.at(rest[number], fold, np.where(is_kept, 0.0, each))
    return Pairs(document, label, [each[is_kept] for each in marginals], is_true[is_kept], rest)


def _list_tables(tables: Sequence[LabelSizeProbs]) -> LabelSizeProbs:
    """Return the tables of all members with the same labels: (I, m, M, Z) and empty (I, m).

    Labels that no member finds likely are left out.
    """
    labels, align = align_tables(tables)
    probs = np.stack([align(number) for number in range(len(tables))])
    is_kept = (labels >= 0) & (probs.sum(axis=3).max(axis=0) >= LEAST_IN_SET)
    M = max(int(is_kept.sum(axis=1).max(initial=0)), 1)
    places = np.argsort(~is_kept, axis=1, kind="stable")[:, :M]
    is_kept = np.take_along_axis(is_kept, places, axis=1)
    labels = np.where(is_kept, np.take_along_axis(labels, places, axis=1), -1)
    probs = np.take_along_axis(probs, places[None, :, :, None], axis=2)
    probs = np.where(is_kept[None, :, :, None], probs, 0.0)
    return LabelSizeProbs(labels, probs, np.stack([each.empty for each in tables]))


def _fit(outputs: Outputs, on_progress: OnProgress) -> list[FittedRule]:
    count = count_up("fitting weights", on_progress, len(PREDICT), "rules")
    fitted = []
    for each in fit_rules(outputs, list(PREDICT)):
        fitted.append(each)
        count(1)
    return fitted


def _describe(
    names: Sequence[str],
    kept: Sequence[int],
    outputs: Outputs,
    default: Floats,
    fitted: Sequence[FittedRule],
) -> dict[str, Any]:
    """Return the weights and the scores as plain JSON values, for people."""
    log_probs = outputs.true_log_probs
    return {
        "members": list(names),
        "left_out": [name for number, name in enumerate(names) if number not in kept],
        "n_documents": len(outputs.fold),
        "weights": _round(default),
        "log_likelihood": {
            "members": [mean_log_likelihood(log_probs, each) for each in np.eye(len(names))],
            "mixture": mean_log_likelihood(log_probs, default),
        },
        "rules": {
            each.rule: {
                "weights": _round(each.weights),
                "chosen": each.chosen,
                "measure": each.measure,
                "members": list(each.member_scores),
                "mixture": each.score,
                "held_out": each.held_out_score,
            }
            for each in fitted
        },
    }


def _round(weights: Floats) -> list[float]:
    return [round(float(each), 4) for each in weights]


def _list_notes(
    names: Sequence[str], kept: Sequence[int], fitted: Sequence[FittedRule]
) -> Iterator[str]:
    left_out = [name for number, name in enumerate(names) if number not in kept]
    if left_out:
        yield f"Left out, because no rule gives them weight: {', '.join(left_out)}."
    for each in fitted:
        if each.chosen == BEST:
            best = names[int(np.argmax(each.weights))]
            yield f"Rule {each.rule} uses {best} alone: no other weights were better."


def _choose_tokens(every: Tagger, kept: Sequence[int], batches: Sequence[Batch]) -> list[Batch]:
    """Return the documents for the members that are kept: without the tokens of the others."""
    assert isinstance(every.config, MixtureConfig)
    numbers = list(dict.fromkeys(every.config.members[member].tokenizer for member in kept))
    n_parts = len(every.encoder.parts)
    if len(numbers) == n_parts:
        return list(batches)
    chosen = []
    for tokens, labels in batches:
        parts = split_rows(tokens, n_parts)
        wanted = [parts[number] for number in numbers]
        chosen.append((wanted[0] if len(wanted) == 1 else join_rows(wanted), labels))
    return chosen


def _calibrate(
    mixture: Tagger, batches: Sequence[Batch], split: str | None, on_progress: OnProgress
) -> Tagger:
    """Calibrate the mixture on the documents, if they are enough."""
    n_documents = sum(len(labels) for _, labels in batches)
    if n_documents < LEAST_DOCUMENTS:
        on_progress(
            Note(
                f"{n_documents:,} documents are fewer than the {LEAST_DOCUMENTS} needed to "
                "calibrate: probabilities are the model's own."
            )
        )
        return mixture
    documents = LabelledDocuments(split, lambda tagger: iter(batches), n_documents=n_documents)
    calibration = fit_calibration(mixture, documents, on_progress=on_progress)
    return replace(mixture, calibration=calibration)
