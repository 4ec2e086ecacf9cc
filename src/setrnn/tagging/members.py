"""The members of an automatic training: their training, in this process or another, and speed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from setrnn.config import Config
from setrnn.data.batches import take_rows
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.methods import find_method
from setrnn.progress import Note, OnProgress, Progress
from setrnn.systems.rules import MANY_SETS
from setrnn.tagging.documents import Batch, LabelledDocuments
from setrnn.tagging.fitting import train_uncalibrated
from setrnn.tagging.planning import Candidate
from setrnn.tagging.tagger import Tagger
from setrnn.training.run_folder import has_run, only_trainer, run_folder_of
from setrnn.training.start import TrainOptions

TIMED_DOCUMENTS = 32


@dataclass(frozen=True)
class Planned:
    """A candidate with its data, and with settings that fit them."""

    candidate: Candidate
    prepared: Prepared
    config: Config

    def with_epochs(self, n_epochs: int, n_measured: int) -> Planned:
        """Return the same with a number of epochs, and of documents measured after each.

        0 epochs are those of a system that is fitted in one step.
        """
        if not n_epochs:
            return self
        training = replace(self.config.training, epochs=n_epochs, valid_documents=n_measured)
        return replace(self, config=replace(self.config, training=training))


@dataclass(frozen=True)
class Member:
    """A trained member, and the seconds that it takes to predict a document."""

    candidate: Candidate
    tagger: Tagger
    seconds: float


@dataclass(frozen=True)
class PortablePlan:
    """A planned member that can be sent to another process."""

    candidate: Candidate
    folder: Path
    config: Config

    @classmethod
    def of(cls, planned: Planned) -> PortablePlan:
        """Name the folder of the data instead of opening it."""
        return cls(planned.candidate, planned.prepared.folder, planned.config)

    def opened(self) -> Planned:
        """Open the data."""
        return Planned(self.candidate, Prepared(self.folder), self.config)


def work_on_member(
    planned: PortablePlan,
    place: Path,
    options: TrainOptions,
    asked_at: float,
    on_progress: OnProgress,
) -> None:
    """Train a member in a process of its own; its start, too, takes some of the time."""
    with only_trainer(run_folder_of(place), wait=True):  # until an orphan has stopped
        if options.max_seconds is not None:
            seconds = options.max_seconds - (time.time() - asked_at)
            options = replace(options, max_seconds=seconds)
        train_member(planned.opened(), place, replace(options, on_progress=on_progress))


def train_member(planned: Planned, place: Path | None, options: TrainOptions) -> Tagger:
    """Train a member, and save it if it has a place; a network that was stopped continues."""
    if place is not None and planned.candidate.is_network:
        run = run_folder_of(place)
        options = replace(options, run_folder=run, resume=has_run(run))
    method = find_method(planned.candidate.method)
    return train_uncalibrated(planned.prepared, method, planned.config, options, place)


def name_member(name: str, on_progress: OnProgress) -> OnProgress:
    """Return a callback that names the member in what it reports."""

    def report(event: Progress | Note) -> None:
        if isinstance(event, Note):
            on_progress(replace(event, text=f"{name}: {event.text}"))
        else:
            on_progress(replace(event, activity=f"{event.activity} {name}"))

    return report


def describe_member(member: Member) -> dict[str, Any]:
    """Return how a member was trained, as plain JSON values."""
    notes, config = member.tagger.notes, member.tagger.config
    described: dict[str, Any] = {"name": member.candidate.name, "method": member.candidate.method}
    if member.candidate.is_network:
        described |= {
            "seed": config.seed,
            "epochs": config.training.epochs,
            "valid_documents": config.training.valid_documents,
            "epochs_done": len(notes["epochs"]),
            "best_epoch": notes["best_epoch"],
        }
    return {**described, "training_seconds": notes.get("training_seconds")}


def time_prediction(tagger: Tagger, tokens: Ragged) -> float:
    """Return the seconds that a tagger takes per document, from an even sample of documents."""
    rows = np.linspace(0, len(tokens) - 1, min(TIMED_DOCUMENTS, len(tokens))).round()
    sample = take_rows(tokens, rows.astype(np.int64))
    start = time.perf_counter()
    tagger.system.marginals(sample, tagger.system.candidates(sample, MANY_SETS))
    return (time.perf_counter() - start) / len(sample)


def take_evenly(documents: LabelledDocuments, n_all: int, n_taken: int) -> LabelledDocuments:
    """Return evenly spaced documents of a part that has `n_all`."""
    rows = np.linspace(0, n_all - 1, n_taken).round().astype(np.int64)

    def batches(tagger: Tagger) -> Iterator[Batch]:
        start = 0
        for tokens, labels in documents.batches(tagger):
            own = rows[(rows >= start) & (rows < start + len(labels))] - start
            start += len(labels)
            if len(own):
                yield take_rows(tokens, own), [labels[row] for row in own]

    return LabelledDocuments(documents.split, batches, documents.bad_rows, len(rows))
