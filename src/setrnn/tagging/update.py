"""One update of one model: its data, its training, and what it changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from setrnn.config import Config, MixtureConfig, settings_hash
from setrnn.data.document_sketch import DocumentSketch
from setrnn.data.example import Example
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import distinct_sets
from setrnn.data.merging import Merged
from setrnn.data.prepared import Prepared
from setrnn.data.preparing import Stream, prepare
from setrnn.data.ragged import Ragged
from setrnn.data.vocabulary import Vocabulary
from setrnn.methods import find_method
from setrnn.model.growing import grow_weights
from setrnn.models.card import note_training
from setrnn.progress import Note, OnProgress, Progress
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.tagging.calibrating import calibrate_on_valid
from setrnn.tagging.distilling import fingerprint
from setrnn.tagging.documents import LabelledDocuments
from setrnn.tagging.fitting import measure_on_valid, save_again, train_uncalibrated
from setrnn.tagging.further_training import TIMES_RATE, choose_schedule, fit_to_sets, replay
from setrnn.tagging.members import MemberPlan, name_member
from setrnn.tagging.members_folder import MembersFolder
from setrnn.tagging.merged_documents import measure_documents, note_documents, valid_documents
from setrnn.tagging.mixing import join, list_names, mix_members
from setrnn.tagging.mixture_outputs import LEAST_TO_FIT
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.targets import keep_targets, note_targets
from setrnn.training.run_folder import check_run, has_run, mark_saved, only_trainer, run_folder_of
from setrnn.training.start import Start, TrainOptions

MOST_MEASURED = 1_000  # documents that show what an update changes, of the old and of the new
UPDATED = "updated"  # in the notes of a model
BEFORE = "before"  # in the identity of a run: the model that is updated


@dataclass
class Update:
    """One update of one model."""

    name: str
    before: Tagger
    merged: Merged
    folder: Path  # of prepared data
    has_old: bool
    changes: Mapping[str, Any]  # of the settings of training
    out: Path | None
    device: str
    resume: bool
    on_progress: OnProgress

    def run(self) -> Tagger:
        """Update the model or its members, save and calibrate it, and measure the change."""
        start = time.perf_counter()
        note_documents(self.merged, self.on_progress)
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

    def _prepare(self, part: int) -> Prepared:
        """Prepare the data for one tokenizer."""
        counts: dict[str, int] = {}

        def count(step: str, n_documents: int) -> None:
            counts[step] = counts.get(step, 0) + n_documents
            self.on_progress(Progress(step, counts[step]))

        text = next(config.text for number, config in self._configs if number == part)
        known = Vocabulary(self.before.encoder.parts[part], self.before.labels, self.has_old)
        target = self.folder / f"part-{part}"
        tree, streams = self.hierarchy, self.merged.streams()
        if tree is not None:
            streams = {name: partial(_close, tree, stream) for name, stream in streams.items()}
        return prepare(streams, target, self._data_name, text, {}, count, known, tree)

    @property
    def hierarchy(self) -> Hierarchy | None:
        """That of the model; if its predictions are closed, so are the labels of documents."""
        before = self.before.hierarchy
        if before is None:
            return None
        return replace(before, closes_labels=before.closes_labels or before.keeps_closed)

    @property
    def _data_name(self) -> str:
        """The names of the old and the new data."""
        old = self.merged.old_name or self.before.notes.get("data")
        return f"{old} + {self.merged.name}" if old else self.merged.name

    @property
    def _configs(self) -> Iterator[tuple[int, Config]]:
        """The number of the tokenizer and the settings of each member, or of the model."""
        config = self.before.config
        if not isinstance(config, MixtureConfig):
            yield 0, config
            return
        for each in config.members:
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
        config = fit_to_sets(config, prepared)
        options = TrainOptions(self.device, on_progress=on_progress, rule=self.before.rule)
        used = config
        if method.is_network:
            assert isinstance(member.system, NeuralSystem)
            known = Vocabulary(member.encoder, member.labels)
            grown = grow_weights(
                member.system.network, method.decoder, config.model, known, prepared
            )
            n_old = self.merged.n_old.get("train", 0)
            used = choose_schedule(config, self.changes)
            options = replace(
                options,
                run_folder=run,
                resume=self.resume and run is not None and has_run(run),
                start=Start(grown.weights, grown.new_rows, TIMES_RATE, fits_wide=self.has_old),
                documents=replay(prepared, n_old, config),
                identity={BEFORE: fingerprint(member)},
            )
        tagger = train_uncalibrated(prepared, method, used, options)
        # The next update starts from the settings of the training, not from those of this update.
        config = replace(tagger.config, training=config.training, encoder=config.encoder)
        return self._remember(replace(tagger, config=config))

    def _remember(self, tagger: Tagger) -> Tagger:
        """Add what the model before was trained on, if that is not a part of the data."""
        if self.has_old:
            return tagger
        before = self.before
        sketch = None
        if before.trained_documents is not None and tagger.trained_documents is not None:
            sketch = DocumentSketch.union([before.trained_documents, tagger.trained_documents])
        seen_sets = None
        if before.seen_sets is not None and tagger.seen_sets is not None:
            seen_sets = distinct_sets(Ragged.concatenate([before.seen_sets, tagger.seen_sets]))[0]
        return replace(tagger, trained_documents=sketch, seen_sets=seen_sets)

    # A mixture

    def _update_mixture(self, run: Path | None) -> Tagger:
        """Update all members, and fit weights."""
        names = self._name_members()
        folder = MembersFolder(run, tuple(names))
        folder.check(self.resume)
        identity = {
            BEFORE: fingerprint(self.before),
            "data": settings_hash([each.description["files"] for each in self.prepared]),
        }
        folder.begin(identity)
        updated: dict[str, Tagger] = {}
        for (part, _), member, name in zip(self._configs, self.before.members, names, strict=True):
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
            return replace(
                member,
                trained_documents=self.before.trained_documents,
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
        documents = valid_documents(self.merged, ["old", "new"])
        n_documents = self.prepared[0].description["n_documents"]["train"]
        own = {"data": self._data_name, "n_documents": n_documents}
        if (documents.n_documents or 0) >= LEAST_TO_FIT:
            calibration = self.before.calibration
            mixed = mix_members(names, members, documents, calibration, self.on_progress)
            return replace(mixed, notes=mixed.notes | own)
        system, weights = self.before.system, None
        assert isinstance(system, MixtureSystem)
        if len(members) == n_before:
            weights = system.weights
        mixture = replace(join(members, weights), notes=own | note_training())
        mixture = keep_targets(mixture, self.before.calibration, self.on_progress)
        note_targets(mixture, self.on_progress)
        return mixture

    # What the update changes

    @cached_property
    def _measured(self) -> dict[str, LabelledDocuments]:
        """The documents that show what the update changes."""
        parts = {
            kind: valid_documents(self.merged, [kind], MOST_MEASURED) for kind in ("old", "new")
        }
        return {kind: each for kind, each in parts.items() if each.n_documents}

    def _measure(self, tagger: Tagger, kind: str) -> dict[str, float]:
        documents = self._measured[kind]
        return measure_documents(tagger, documents, self.labels.names, kind, self.on_progress)

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


def _close(hierarchy: Hierarchy, stream: Stream) -> Iterator[Example]:
    return hierarchy.close_examples(stream())
