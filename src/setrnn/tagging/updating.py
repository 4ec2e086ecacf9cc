"""Update a trained model with new documents, and with new labels."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from setrnn.config import Config, TrainingSettings, from_dict, read_changes, to_dict
from setrnn.data.batches import TrainingDocuments, even_rows, take_rows
from setrnn.data.cache import cache_folder
from setrnn.data.document_sketch import DocumentSketch
from setrnn.data.example import Example
from setrnn.data.folders import explain_failed_write
from setrnn.data.joint_encoder import split_rows
from setrnn.data.labels import distinct_sets
from setrnn.data.merging import Bools, Merged, merge
from setrnn.data.model_folder import check_model_place
from setrnn.data.prepared import Prepared, Vocabulary, prepare
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError
from setrnn.methods import find_method
from setrnn.metrics import evaluate_label_sets
from setrnn.model.growing import grow_weights
from setrnn.progress import Note, OnProgress, Progress, count_up, ignore_progress
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.tagging.calibrating import calibrate_on_valid
from setrnn.tagging.documents import (
    MOST_SEEN,
    LabelledDocuments,
    SeenCounts,
    example_batches,
)
from setrnn.tagging.fitting import (
    check_out,
    explain_stop,
    measure_on_valid,
    save_again,
    train_uncalibrated,
)
from setrnn.tagging.members import MemberPlan, name_member
from setrnn.tagging.members_folder import MembersFolder
from setrnn.tagging.mixing import join, list_names, mix_members
from setrnn.tagging.mixture_outputs import LEAST_TO_FIT
from setrnn.tagging.occasion import describe_occasion
from setrnn.tagging.opening import Data, Settings, list_overrides, make_source
from setrnn.tagging.tagger import Tagger, load
from setrnn.tagging.targets import keep_targets, note_targets
from setrnn.training.run_folder import (
    check_run,
    has_run,
    mark_saved,
    only_trainer,
    run_folder_of,
)
from setrnn.training.start import Start, TrainOptions

# Chosen on the valid parts of debtags and arxiv: see benchmarks/README.md.
import os
SHARE_OF_STEPS = float(os.environ.get("U_SHARE", 0.13))  # of those of the training before
LEAST_EPOCHS = int(os.environ.get("U_EPOCHS", 2))
SHARE_OF_RATE = float(os.environ.get("U_RATE", 0.5))  # of the highest learning rate
TIMES_NEW = int(os.environ.get("U_TIMES", 2))  # how often an epoch has each new document, if there are old ones
MOST_MEASURED = 1_000  # documents that show what an update changes, of the old and of the new
MEASURES = ("instance_f1", "label_f1", "micro_f1")
UPDATED = "updated"  # in the notes of a model
BEFORE = "before"  # in the identity of a run: the model that is updated


def update(
    model: str | Path | Tagger,
    new: Data,
    *,
    data: Data | None = None,
    out: str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    resume: bool = False,
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
    `notes["updated"]` has measures of both models on these documents.

    Args:
        model: a model folder or a tagger. It is not changed.
        new: the new documents with labels: a file, several, a folder, `hf:NAME` or "newsroom"; a
            `Source` says how to read them. An export of the page is such a file.
        data: the documents that the model was trained on, in the same forms.
        out: the model folder to write; not that of the model.
        settings: settings of the further training, such as `{"training.epochs": 5}`.
        device: where to compute: auto, cpu or cuda.
        resume: continue an update that was stopped, kept in OUT.run.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> from setrnn.data.formats import write_examples
        >>> text = "The chess club won the match in the park."
        >>> write_examples([setrnn.Example("c1", text, ["sport", "chess"])], "new.jsonl")
        >>> updated = setrnn.update(tagger, "new.jsonl", data="newsroom")
        >>> len(tagger.labels), len(updated.labels), updated.labels.names[-1]
        (65, 66, 'chess')
    """
    changes = _read_settings(settings)
    target = None if out is None else Path(out)
    if target is not None:
        _refuse_own_folder(model, target)
    check_out(target, resume)
    with explain_stop(target), ExitStack() as stack:
        before = model if isinstance(model, Tagger) else load(model, device)
        name = before.method if isinstance(model, Tagger) else Path(model).resolve().name
        _refuse_without_documents(before, data is not None)
        merged = merge(
            make_source(new),
            None if data is None else make_source(data),
            _recognise(before),
        )
        folder = stack.enter_context(_temporary_folder())
        work = Update(
            name, before, merged, folder, data is not None, changes, target, device, resume,
            on_progress,
        )
        return work.run()


def _read_settings(settings: Settings) -> Mapping[str, Any]:
    """Return changes of the settings of training; refuse others."""
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


def _refuse_own_folder(model: str | Path | Tagger, out: Path) -> None:
    check_model_place(out)
    if not isinstance(model, Tagger) and Path(model).resolve() == out.resolve():
        raise ConfigError(f"--out is {out}, the model itself. Name another folder.")


def _refuse_without_documents(before: Tagger, has_old: bool) -> None:
    methods = [each.method for each in before.members] or [before.method]
    if not has_old and not any(find_method(each).is_network for each in methods):
        raise ConfigError(
            f"'{', '.join(methods)}' is fitted on all documents at once. Give those that the model "
            "was trained on too: --data OLD."
        )


def _temporary_folder() -> TemporaryDirectory[str]:
    place = cache_folder()
    with explain_failed_write(place):
        place.mkdir(parents=True, exist_ok=True)
        return TemporaryDirectory(prefix="update-", dir=place)


def _recognise(tagger: Tagger) -> Any:  # noqa: ANN401 (WasTrainedOn or None)
    """Return what says of each document whether a model was trained on it; None if it cannot."""
    sketches = tagger.trained_documents
    if not sketches or not all(each.is_complete for each in sketches):
        return None

    def was_trained_on(examples: Sequence[Example]) -> Bools:
        ((tokens, _),) = example_batches(tagger, examples, len(examples))
        parts = split_rows(tokens, len(sketches))
        found = [each.recognise(part) for each, part in zip(sketches, parts, strict=True)]
        return np.any(found, axis=0)

    return was_trained_on


@dataclass
class Update:
    """One update of one model."""

    name: str
    before: Tagger
    merged: Merged
    folder: Path | str  # of prepared data
    has_old: bool
    changes: Mapping[str, Any]  # of the settings of training
    out: Path | None
    device: str
    resume: bool
    on_progress: OnProgress

    def run(self) -> Tagger:
        """Update the model or its members, save and calibrate it, and measure the change."""
        start = time.perf_counter()
        self._note_documents()
        self.prepared = [self._prepare(part) for part in range(len(self.before.encoder.parts))]
        self.labels = self.prepared[0].labels
        self._note_labels()
        scores = {name: {"before": self._measure(self.before, name)} for name in self._measured}
        run = None if self.out is None else run_folder_of(self.out)
        with only_trainer(run):
            tagger = self._update_mixture(run) if self.before.members else self._update_one(run)
            tagger = replace(tagger, rule=self.before.rule)
            for name, row in scores.items():
                row["after"] = self._measure(tagger, name)
            seconds = round(time.perf_counter() - start, 2)
            tagger.notes.update({"training_seconds": seconds, UPDATED: self._describe(scores)})
            if self.out is None:
                return tagger
            way_out = f" The work is kept in {run}: add --resume to write the model."
            saved = save_again(tagger, self.out, way_out, self.resume)
            if run is not None and run.is_dir():
                mark_saved(run)
        return saved

    def _note_documents(self) -> None:
        merged, note = self.merged, self.on_progress
        for text in merged.notes:
            note(Note(text))
        if merged.n_skipped:
            note(Note(f"{merged.n_skipped:,} rows could not be read and were skipped.", True))
        parts = [
            f"{kind} documents: train {n.get('train', 0):,}, valid {n.get('valid', 0):,}"
            for kind, n in (("Old", merged.n_old), ("new", merged.n_new))
            if n
        ]
        note(Note("; ".join(parts) + "."))
        if merged.n_replaced:
            text = f"{merged.n_replaced:,} old documents are replaced by new ones."
            if merged.n_other_texts:
                text += f" {merged.n_other_texts:,} of them had the same id and another text."
            note(Note(text, is_warning=bool(merged.n_other_texts)))
        if not self.has_old:
            text = (
                "Without the old documents, the model may lose what it knows, above all about "
                "labels that the new documents lack, and it is measured and calibrated on new "
                "documents only. Give the documents that it was trained on: --data OLD."
            )
            note(Note(text, is_warning=True))
        elif merged.share_seen is not None and merged.share_seen < MOST_SEEN:
            text = "The model was not trained on the old documents. Are they the right ones?"
            note(Note(text, is_warning=True))

    def _prepare(self, part: int) -> Prepared:
        """Prepare the data for one tokenizer."""
        counts: dict[str, int] = {}

        def count(step: str, n_documents: int) -> None:
            counts[step] = counts.get(step, 0) + n_documents
            self.on_progress(Progress(step, counts[step]))

        text = next(
            config.text for number, config in self._configs if number == part
        )
        known = Vocabulary(self.before.encoder.parts[part], self.before.labels, self.has_old)
        target = Path(self.folder) / f"part-{part}"
        streams = self.merged.streams()
        return prepare(streams, target, self.merged.name, text, {}, count, known=known)

    @property
    def _configs(self) -> Iterator[tuple[int, Config]]:
        """The number of the tokenizer and the settings of each member, or of the model."""
        members = getattr(self.before.config, "members", ())
        if not members:
            yield 0, self.before.config
        for each in members:
            yield each.tokenizer, each.config

    def _note_labels(self) -> None:
        new = self.labels.names[len(self.before.labels) :]
        if new:
            self.on_progress(Note(f"New labels ({len(new):,}): {list_names(new)}."))

    @property
    def has_new_labels(self) -> bool:
        """Whether labels are added."""
        return len(self.labels) > len(self.before.labels)

    # One model, or one member

    def _update_one(self, run: Path | None) -> Tagger:
        """Update a model that is not a mixture."""
        if run is not None and run.exists():
            check_run(run, self.resume)
        tagger = self._train(self.before, 0, run, self.on_progress)
        prepared, method = self.prepared[0], find_method(self.before.method)
        options = TrainOptions(self.device, rule=self.before.rule)
        measure_on_valid(tagger, prepared, method, options)
        tagger = keep_targets(tagger, self.before.calibration, self.on_progress)
        return calibrate_on_valid(tagger, prepared, None, self.on_progress)

    def _train(
        self, member: Tagger, part: int, run: Path | None, on_progress: OnProgress
    ) -> Tagger:
        """Train a network further, or fit a classical system on all documents."""
        method, prepared, config = find_method(member.method), self.prepared[part], member.config
        config = self._fit_settings(config, prepared)
        options = TrainOptions(self.device, on_progress=on_progress, rule=self.before.rule)
        used = config
        if method.is_network:
            assert isinstance(member.system, NeuralSystem)
            known = Vocabulary(member.encoder, member.labels)
            weights = grow_weights(
                member.system.network, method.decoder, config.model, known, prepared
            )
            used = self._choose_schedule(config)
            options = replace(
                options,
                run_folder=run,
                resume=self.resume and run is not None and has_run(run),
                start=Start(weights, fits_wide=self.has_old),
                documents=self._replay(prepared, config, used.training.epochs),
                identity={BEFORE: _fingerprint(member)},
            )
        tagger = train_uncalibrated(prepared, method, used, options)
        # The next update starts from the settings of the training, not from those of this update.
        config = replace(tagger.config, training=config.training, encoder=config.encoder)
        return self._remember(replace(tagger, config=config), part)

    def _fit_settings(self, config: Config, prepared: Prepared) -> Config:
        """Return the settings of a model for data that may have empty or larger label sets."""
        sizes, model = prepared.split("train").labels.lengths, config.model
        if model.empty_sets == "off" and bool((sizes == 0).any()):
            model = replace(model, empty_sets="on")
        return replace(config, model=model)

    def _choose_schedule(self, config: Config) -> Config:
        """Return settings for a few epochs at a lower learning rate."""
        training = config.training
        training = replace(
            training,
            epochs=max(LEAST_EPOCHS, round(SHARE_OF_STEPS * training.epochs)),
            learning_rate=SHARE_OF_RATE * training.learning_rate,
            random_share=0.0,
        )
        rate = SHARE_OF_RATE * config.encoder.learning_rate
        training = from_dict(TrainingSettings, {**to_dict(training), **self.changes})
        encoder = replace(config.encoder, learning_rate=rate)
        return replace(config, training=training, encoder=encoder)

    def _replay(
        self, prepared: Prepared, config: Config, n_epochs: int
    ) -> TrainingDocuments | None:
        """Return the documents of each epoch: the new ones several times, and a sample of the old.

        All epochs together have a share of the documents of a whole training. None is all once.
        """
        train, n_old = prepared.split("train"), self.merged.n_old.get("train", 0)
        if not n_old:
            return None
        new = np.repeat(np.arange(n_old, len(train)), TIMES_NEW)
        n_wanted = round(SHARE_OF_STEPS * config.training.epochs * len(train) / n_epochs)
        n_replayed = min(max(n_wanted - len(new), len(new)), n_old)
        random = np.random.default_rng(config.seed)
        old = np.sort(random.permutation(n_old)[:n_replayed])
        rows = np.concatenate([old, new])
        tokens, labels = take_rows(train.tokens, rows), take_rows(train.labels, rows)
        return TrainingDocuments(tokens, labels, train_rows=rows)

    def _remember(self, tagger: Tagger, part: int) -> Tagger:
        """Add what the model before was trained on, if that is not a part of the data."""
        if self.has_old:
            return tagger
        before = self.before
        sketches: tuple[DocumentSketch, ...] = ()
        if before.trained_documents:
            own = [before.trained_documents[part], *tagger.trained_documents]
            sketches = (DocumentSketch.union(own),)
        seen_sets = None
        if before.seen_sets is not None and tagger.seen_sets is not None:
            seen_sets = distinct_sets(Ragged.concatenate([before.seen_sets, tagger.seen_sets]))[0]
        return replace(tagger, trained_documents=sketches, seen_sets=seen_sets)

    # A mixture

    def _update_mixture(self, run: Path | None) -> Tagger:
        """Update all members, and fit weights."""
        names = self._name_members()
        folder = MembersFolder(run, tuple(names))
        folder.check(self.resume)
        identity = {BEFORE: _fingerprint(self.before), "data": self._identify_data()}
        folder.begin(identity)
        updated: dict[str, Tagger] = {}
        for (part, _), member, name in zip(
            self._configs, self.before.members, names, strict=True
        ):
            found = self._update_member(member, part, name, folder)
            if found is not None:
                updated[name] = found
        return self._mix(updated, len(names))

    def _name_members(self) -> list[str]:
        """Return distinct names of the members: those they had, or their methods."""
        mixture = self.before.notes.get("mixture", {})
        left_out = mixture.get("left_out", ())
        names = [name for name in mixture.get("members", ()) if name not in left_out]
        methods = [each.method for each in self.before.members]
        if len(names) != len(methods) or any("/" in name or name[:1] == "." for name in names):
            names = [f"{method}-{number}" for number, method in enumerate(methods, 1)]
        return names

    def _identify_data(self) -> str:
        seals = [each.description["files"] for each in self.prepared]
        return hashlib.blake2b(repr(seals).encode(), digest_size=16).hexdigest()

    def _update_member(
        self, member: Tagger, part: int, name: str, folder: MembersFolder
    ) -> Tagger | None:
        """Return an updated member; None if it must be left out."""
        if not find_method(member.method).is_network and not self.has_old:
            if self.has_new_labels:
                text = (
                    f"{name} is left out: it does not know the new labels, and cannot be fitted "
                    "without the old documents."
                )
                self.on_progress(Note(text, is_warning=True))
                return None
            self.on_progress(Note(f"{name} stays as it is: it is not fitted without --data."))
            sketches = self.before.trained_documents
            return replace(
                member,
                trained_documents=sketches[part : part + 1],
                seen_sets=self.before.seen_sets,
            )
        found = folder.find(name, self.device)
        if found is not None:
            self.on_progress(Note(f"{name}: updated before."))
            return found
        folder.plan(name, MemberPlan(), 0.0)
        self.on_progress(Note(f"Updating {name}."))
        place = folder.place(name)
        run = None if place is None else run_folder_of(place)
        is_network = find_method(member.method).is_network
        report = name_member(name, self.on_progress)
        with only_trainer(run if is_network else None, wait=True):
            tagger = self._train(member, part, run if is_network else None, report)
            return tagger if place is None else tagger.saved_to(place)

    def _mix(self, updated: Mapping[str, Tagger], n_before: int) -> Tagger:
        """Mix the members on the valid part; if that is too small, with the weights before."""
        names, members = list(updated), list(updated.values())
        documents = self._documents(["old", "new"])
        if documents.n_documents >= LEAST_TO_FIT:
            calibration = self.before.calibration
            mixed = mix_members(names, members, documents, calibration, self.on_progress)
            n_documents = self.prepared[0].description["n_documents"]["train"]
            notes = {**mixed.notes, "data": self.merged.name, "n_documents": n_documents}
            return replace(mixed, notes=notes)
        system, weights = self.before.system, None
        assert isinstance(system, MixtureSystem)
        if len(members) == n_before:
            weights = system.weights
        n_train = self.prepared[0].description["n_documents"]["train"]
        notes = {"data": self.merged.name, "n_documents": n_train, **describe_occasion()}
        mixture = replace(join(members, weights), notes=notes)
        mixture = keep_targets(mixture, self.before.calibration, self.on_progress)
        note_targets(mixture, self.on_progress)
        return mixture

    # What the update changes

    def _documents(self, kinds: Sequence[str], most: int | None = None) -> LabelledDocuments:
        """Return valid documents of some kinds; an even sample if there are more than `most`."""
        merged = self.merged
        both = {"old": (merged.old, merged.n_old), "new": (merged.new, merged.n_new)}
        n_documents = sum(both[kind][1].get("valid", 0) for kind in kinds)

        def read() -> Iterator[Example]:
            for kind in kinds:
                if "valid" in both[kind][0]:
                    yield from both[kind][0]["valid"]()

        def choose() -> Iterator[Example]:
            rows = even_rows(n_documents, most or n_documents)
            examples, done = read(), 0
            for row in rows.tolist():
                yield next(islice(examples, row - done, None))
                done = row + 1

        n_read = min(n_documents, most or n_documents)
        return LabelledDocuments(
            "valid", lambda tagger: example_batches(tagger, choose()), n_documents=n_read
        )

    @cached_property
    def _measured(self) -> dict[str, LabelledDocuments]:
        """The documents that show what the update changes."""
        parts = {kind: self._documents([kind], MOST_MEASURED) for kind in ("old", "new")}
        return {kind: each for kind, each in parts.items() if each.n_documents}

    def _measure(self, tagger: Tagger, kind: str) -> dict[str, float]:
        """Measure a model on valid documents, over the labels of both models."""
        documents, seen = self._measured[kind], SeenCounts(tagger)
        truth: list[tuple[str, ...]] = []
        predicted: list[tuple[str, ...]] = []
        count = count_up(f"measuring on {kind} documents", self.on_progress, documents.n_documents)
        for tokens, labels in seen.watch(documents.batches(tagger)):
            truth += labels
            predicted += [each.labels for each in tagger.tag_tokens(tokens)]
            count(len(labels))
        scores = evaluate_label_sets(truth, predicted, self.labels.names)
        return {
            **{name: float(getattr(scores, name)) for name in MEASURES},
            "share_trained_on": seen.share,
        }

    def _describe(self, scores: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was updated, as plain JSON values, for people."""
        before, merged = self.before, self.merged
        updates = before.notes.get(UPDATED, {}).get("n_updates", 0)
        return {
            "from": self.name,
            "from_data": before.notes.get("data"),
            "from_trained": before.notes.get("trained"),
            "n_updates": updates + 1,
            "has_old": self.has_old,
            "n_old": dict(merged.n_old),
            "n_new": dict(merged.n_new),
            "n_replaced": merged.n_replaced,
            "new_labels": list(self.labels.names[len(before.labels) :]),
            "n_measured": {kind: each.n_documents for kind, each in self._measured.items()},
            "scores": dict(scores),
        }


def _fingerprint(tagger: Tagger) -> str:
    """Return a hash of the weights of a model."""
    digest = hashlib.blake2b(digest_size=16)
    for name, array in sorted(tagger.system.arrays().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
