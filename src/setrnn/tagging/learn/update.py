"""Update a trained model with new documents, and with new labels.

A network is trained further: fewer steps, a lower learning rate, old documents replayed. These were
chosen on the valid parts of debtags and arxiv.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setrnn.config import Config, TrainingSettings, from_dict, read_changes, to_dict
from setrnn.data.batches import TrainingDocuments
from setrnn.data.cache import Vocabulary, cache_folder, prepare
from setrnn.data.disk import explain_failed_write, temporary_folder
from setrnn.data.labels import Incomplete
from setrnn.data.merging import Merged, merge
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import even_rows
from setrnn.errors import ConfigError
from setrnn.methods import find_method
from setrnn.metrics import evaluate_label_sets
from setrnn.model.network import grow_weights
from setrnn.models.card import note_columns
from setrnn.models.folder import check_model_place
from setrnn.progress import OnProgress, count_up, ignore_progress, log, name_reports
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.tagging.documents import (
    MAX_SEEN,
    LabelledDocuments,
    SeenCounts,
    example_batches,
    open_documents,
)
from setrnn.tagging.learn.data import Data, Settings, list_overrides, make_source
from setrnn.tagging.learn.mix import join_seen_sets, join_trained, list_names, mix_members
from setrnn.tagging.learn.train import measure_on_valid, train_uncalibrated
from setrnn.tagging.tagger import Tagger, open_model
from setrnn.tagging.trust.calibrate import calibrate_or_warn
from setrnn.training.start import Start, TrainOptions

SHARE_OF_STEPS, MIN_EPOCHS = 0.13, 2  # of a whole training
SHARE_OF_RATE = 0.5  # of the highest learning rate
TIMES_RATE = 4.0  # the rows of new labels learn so much faster
TIMES_NEW = 3  # an epoch has each new document, if there are old ones
MAX_MEASURED = 1_000  # documents that show what an update changes, of the old and of the new
MEASURES = ("instance_f1", "label_f1", "micro_f1")
UPDATED = "updated"  # in the notes of a model


def update(
    model: str | Path | Tagger,
    new: Data,
    *,
    data: Data | None = None,
    out: str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Update a model with new documents, and return the new model as a tagger.

    A new document replaces an old one with the same id or text. Labels that the model does not know
    are added; labels that no longer occur are kept. Networks are trained further for a few epochs,
    classical systems are fitted again. The members of a mixture are updated one by one, and then
    get new weights. The model is calibrated, to the targets of the model before.

    Without the old documents, old knowledge may be lost, the words stay the same, and classical
    systems cannot be fitted: members of a mixture stay as they are, or are left out if there are
    new labels.

    The valid part is that of the old and of the new documents. Where there is none, it is what the
    model was not trained on, and a tenth of the new documents.
    `notes["updated"]` has measures of both models on these documents. A stopped update leaves
    nothing: it takes a small share of the time of a training.

    Args:
        model: a model folder or a tagger. It is not changed.
        new: the new documents with labels: a file, several, a folder, `hf:NAME` or "newsroom"; a
            `Source` says how to read them. An export of the page is such a file.
        data: the documents that the model was trained on, in the same forms.
        out: the model folder to write; not that of the model.
        settings: settings of the further training, such as `{"training.epochs": 5}`.
        device: where to compute: auto, cpu, cuda or mps.
        on_progress: called with the progress.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> from setrnn.data.read import write_examples
        >>> text = "The chess club won the match in the park."
        >>> chess = setrnn.Example("c1", text, ["sport", "chess"])
        >>> n_written = write_examples([chess], "new.jsonl")
        >>> updated = setrnn.update(tagger, "new.jsonl", data="newsroom")
        >>> len(tagger.labels), len(updated.labels), updated.labels.names[-1]
        (65, 66, 'chess')
    """
    start = time.perf_counter()
    changes = read_training_changes(settings)
    target = None if out is None else Path(out)
    if target is not None:
        check_model_place(target)
        if not isinstance(model, Tagger) and Path(model).resolve() == target.resolve():
            raise ConfigError(f"--out is {target}, the model itself. Name another folder.")
    place = cache_folder() / "update"  # of prepared data, which is removed at the end
    with explain_failed_write(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(place, is_private=True) as folder:
        name, before = open_model(model, device)
        methods = [each.tagger.method for each in _list_members(before)]
        if data is None and not any(find_method(each).is_network for each in methods):
            raise ConfigError(
                f"'{', '.join(methods)}' is fitted on all documents at once. Give those that the "
                "model was trained on too: --data OLD."
            )
        old = None if data is None else make_source(data)
        merged = merge(make_source(new), old, before.trained_documents)
        _note_documents(merged)
        prepared = [
            _prepare(before, merged, part, folder, on_progress)
            for part in range(len(before.encoder.parts))
        ]
        labels = prepared[0].labels.names
        if new_labels := labels[len(before.labels) :]:
            log.info(f"New labels ({len(new_labels):,}): {list_names(new_labels)}.")
        measured = {kind: _open_valid(merged, [kind], MAX_MEASURED) for kind in ("old", "new")}
        measured = {kind: each for kind, each in measured.items() if each.n_documents}
        first = _measure(before, measured, labels, on_progress)
        further = _FurtherTraining(before, merged, prepared, changes, device, on_progress)
        tagger = further.update_mixture() if before.members else further.update_one()
        tagger = replace(tagger, rule=before.rule)
        after = _measure(tagger, measured, labels, on_progress)
        tagger.notes.update(note_columns(before.notes))
        tagger.notes[UPDATED] = {
            "from": name,
            "from_data": before.notes.get("data"),
            "from_trained": before.notes.get("trained"),
            "n_updates": before.notes.get(UPDATED, {}).get("n_updates", 0) + 1,
            "n_old": merged.n_old,
            "n_new": merged.n_new,
            "n_replaced": merged.n_replaced,
            "new_labels": list(new_labels),
            "n_measured": {kind: each.n_documents for kind, each in measured.items()},
            "scores": {kind: {"before": first[kind], "after": after[kind]} for kind in measured},
        }
        tagger.notes["training_seconds"] = round(time.perf_counter() - start, 2)
        return tagger if target is None else tagger.saved_to(target)


def _prepare(
    before: Tagger, merged: Merged, part: int, folder: Path, on_progress: OnProgress
) -> Prepared:
    """Prepare the data for one tokenizer of a model."""
    members = _list_members(before)
    text = next(each.tagger.config.text for each in members if each.part == part)
    known = Vocabulary(before.encoder.parts[part], before.labels, merged.has_old)
    tree = before.hierarchy
    if tree is not None:  # if the predictions are closed, so are the labels of documents
        tree = replace(tree, closes_labels=tree.closes_labels or tree.keeps_closed)
    name, target = _name_data(before, merged), folder / f"part-{part}"
    return prepare(merged.streams(tree), target, name, text, {}, on_progress, known, tree)


def _name_data(before: Tagger, merged: Merged) -> str:
    """Return the names of the old and the new data."""
    old = merged.old_name or before.notes.get("data")
    return f"{old} + {merged.name}" if old else merged.name


class _Member(NamedTuple):
    """A member of a mixture, or the model itself."""

    name: str
    tagger: Tagger
    part: int  # the number of its tokenizer


def _list_members(before: Tagger) -> list[_Member]:
    """Return the members by distinct names: those they had when they were mixed, or new ones."""
    if not isinstance(before.system, MixtureSystem):
        return [_Member(before.method, before, 0)]
    mixture, members = before.notes.get("mixture", {}), before.members
    left_out = mixture.get("left_out", ())
    names = [name for name in mixture.get("members", ()) if name not in left_out]
    if len(names) != len(members):
        names = [f"{each.method}-{number}" for number, each in enumerate(members, 1)]
    return list(map(_Member, names, members, before.system.parts))


@dataclass(frozen=True)
class _FurtherTraining:
    """The further training of a model, or of the members of a mixture."""

    before: Tagger
    merged: Merged
    prepared: Sequence[Prepared]  # for each tokenizer
    changes: Mapping[str, Any]  # of the settings of training
    device: str
    on_progress: OnProgress

    def update_one(self) -> Tagger:
        """Update a model that is not a mixture."""
        prepared, method = self.prepared[0], find_method(self.before.method)
        tagger = self._train(self.before, 0, self.on_progress)
        options = TrainOptions(self.device, rule=self.before.rule)
        measure_on_valid(tagger, prepared, method, options)
        valid, before = open_documents(prepared, "valid"), self.before.calibration
        return calibrate_or_warn(tagger, valid, None, before, self.on_progress)

    def update_mixture(self) -> Tagger:
        """Update all members, and mix them on the valid part, or with the weights before."""
        before = self.before
        assert isinstance(before.system, MixtureSystem)
        updated: dict[str, Tagger] = {}
        for member in _list_members(before):
            found = self._update_member(*member)
            if found is not None:
                updated[member.name] = found
        documents = _open_valid(self.merged, ["old", "new"])
        weights = before.system.weights if len(updated) == len(before.members) else None
        mixed = mix_members(updated, documents, before.calibration, self.on_progress, weights)
        n_documents = self.prepared[0].description["n_documents"]["train"]
        own = {"data": _name_data(before, self.merged), "n_documents": n_documents}
        return replace(mixed, notes=mixed.notes | own)

    def _update_member(self, name: str, member: Tagger, part: int) -> Tagger | None:
        """Return an updated member; None if it must be left out."""
        before = self.before
        if not find_method(member.method).is_network and not self.merged.has_old:
            if len(self.prepared[0].labels) > len(before.labels):
                log.warning(
                    f"{name} is left out: it does not know the new labels, and cannot be fitted "
                    "without the old documents."
                )
                return None
            log.info(f"{name} stays as it is: it is not fitted without --data.")
            return replace(
                member, trained_documents=before.trained_documents, seen_sets=before.seen_sets
            )
        log.info(f"Updating {name}.")
        with name_reports(name, self.on_progress) as on_progress:
            return self._train(member, part, on_progress)

    def _train(self, member: Tagger, part: int, on_progress: OnProgress) -> Tagger:
        """Train a network further, or fit a classical system on all documents."""
        method, prepared, config = find_method(member.method), self.prepared[part], member.config
        sizes = prepared.split("train").labels.lengths
        most = max(config.model.max_labels, int(sizes.max(initial=0)))  # sets may be larger now
        config = replace(config, model=replace(config.model, max_labels=most))
        options = TrainOptions(self.device, on_progress=on_progress, rule=self.before.rule)
        used = config
        if method.is_network:
            assert isinstance(member.system, NeuralSystem)
            known = Vocabulary(member.encoder, member.labels)
            grown = grow_weights(
                member.system.network, method.decoder, config.model, known, prepared
            )
            used = choose_schedule(config, self.changes)
            n_old = self.merged.n_old.get("train", 0)
            options = replace(
                options,
                start=Start(grown.weights, grown.new_rows, TIMES_RATE),
                documents=replay(prepared, n_old, config),
            )
        tagger = train_uncalibrated(prepared, method, used, options)
        # The next update starts from the settings of the training, not from those of this update.
        config = replace(tagger.config, training=config.training, encoder=config.encoder)
        tagger = replace(tagger, config=config)
        if self.merged.has_old:
            return tagger
        models = [self.before, tagger]  # it was trained on more than what is here
        seen_sets = join_seen_sets(models, tagger.labels)
        return replace(tagger, trained_documents=join_trained(models), seen_sets=seen_sets)


def _measure(
    tagger: Tagger,
    documents: Mapping[str, LabelledDocuments],
    labels: Sequence[str],
    on_progress: OnProgress,
) -> dict[str, dict[str, float]]:
    """Measure a model by its own rule on documents by kind, over labels that it need not know.

    The results also have the share of documents that the model was trained on.
    """
    results, index = {}, tagger.labels.index
    for kind, each in documents.items():
        seen = SeenCounts(tagger)
        truth: list[tuple[str, ...]] = []
        predicted: list[tuple[str, ...]] = []
        count = count_up(f"measuring on {kind} documents", on_progress, each.n_documents)
        for batch in seen.watch(each.batches(tagger)):
            found = [prediction.labels for prediction in tagger.tag_tokens(batch.tokens)]
            if batch.unknown is not None:
                found = [
                    tuple(label for label in row if not marks[index[label]])
                    for row, marks in zip(found, batch.unknown, strict=True)
                ]
            truth += batch.labels
            predicted += found
            count(len(found))
        scores = evaluate_label_sets(truth, predicted, labels)
        results[kind] = {name: float(getattr(scores, name)) for name in MEASURES}
        results[kind]["share_trained_on"] = seen.share
    return results


def _note_documents(merged: Merged) -> None:
    """Log how many documents there are, how many are replaced, and what may be wrong."""
    merged.bad_rows.report()
    parts = [
        f"{kind} documents: train {n.get('train', 0):,}, valid {n.get('valid', 0):,}"
        for kind, n in (("old", merged.n_old), ("new", merged.n_new))
        if n
    ]
    log.info("; ".join(parts).capitalize() + ".")
    if merged.n_replaced:
        text = f"{merged.n_replaced:,} old documents are replaced by new ones."
        if merged.n_other_texts:
            text += f" {merged.n_other_texts:,} of them had the same id and another text."
        (log.warning if merged.n_other_texts else log.info)(text)
    if not merged.n_old:
        log.warning(
            "Without the old documents, the model may lose what it knows, above all about labels "
            "that the new documents lack, and it is measured and calibrated on new documents only. "
            "Give the documents that it was trained on: --data OLD."
        )
    elif merged.share_seen is not None and merged.share_seen < MAX_SEEN:
        log.warning("The model was not trained on the old documents. Are they the right ones?")


def _open_valid(merged: Merged, kinds: Sequence[str], most: int | None = None) -> LabelledDocuments:
    """Return the valid documents of kinds, old or new; an even sample if they exceed `most`."""
    parts = {"old": merged.old, "new": merged.new}
    examples = [each for kind in kinds for each in parts[kind].get("valid", ())]
    rows = even_rows(len(examples), len(examples) if most is None else most)
    chosen = [examples[row] for row in rows.tolist()]
    return LabelledDocuments(
        "valid", lambda tagger: example_batches(tagger, chosen), n_documents=len(rows)
    )


def read_training_changes(settings: Settings) -> Mapping[str, Any]:
    """Return the changed training settings by name; raise ConfigError for other settings."""
    changes = read_changes(None, list_overrides(settings))
    others = [name for name in changes if name != "training"]
    if others:
        raise ConfigError(
            f"An update keeps the model's settings: only those of training can be changed, such as "
            f"training.epochs, not '{others[0]}'."
        )
    found: Mapping[str, Any] = changes.get("training", {})
    from_dict(TrainingSettings, found, "training.")  # raises for wrong names and values
    return found


def choose_schedule(config: Config, changes: Mapping[str, Any]) -> Config:
    """Return the settings for a few epochs at a lower rate, with the changes of the user."""
    before = config.training
    training = replace(
        before,
        epochs=_count_epochs(before),
        learning_rate=SHARE_OF_RATE * before.learning_rate,
    )
    training = from_dict(TrainingSettings, {**to_dict(training), **changes})
    rate = SHARE_OF_RATE * config.encoder.learning_rate
    encoder = replace(config.encoder, learning_rate=rate)
    return replace(config, training=training, encoder=encoder)


def _count_epochs(training: TrainingSettings) -> int:
    """Return the epochs of a further training, unless the user chooses another number."""
    return max(MIN_EPOCHS, round(SHARE_OF_STEPS * training.epochs))


def replay(prepared: Prepared, n_old: int, config: Config) -> TrainingDocuments | None:
    """Return the documents of each epoch: new ones several times, and a sample of the old ones.

    All epochs together have a share of the documents of a whole training, unless the user asks for
    more or fewer epochs.

    Args:
        prepared: the data, whose train part begins with the old documents.
        n_old: the number of these; if there are none, the result is None: all documents once.
        config: the settings of the whole training.
    """
    if not n_old:
        return None
    train = prepared.split("train")
    new = np.repeat(np.arange(n_old, len(train)), TIMES_NEW)
    n_epochs = _count_epochs(config.training)
    n_wanted = round(SHARE_OF_STEPS * config.training.epochs * len(train) / n_epochs)
    n_replayed = min(max(n_wanted - len(new), len(new)), n_old)
    random = np.random.default_rng(config.seed)
    old = np.sort(random.permutation(n_old)[:n_replayed])
    rows = np.concatenate([old, new])
    tokens, labels = train.tokens.take(rows), train.labels.take(rows)
    incomplete = Incomplete.of(train, len(prepared.labels), config.training.forgotten)
    some = None if incomplete is None else incomplete.rows(rows)
    return TrainingDocuments(tokens, labels, incomplete=some)
