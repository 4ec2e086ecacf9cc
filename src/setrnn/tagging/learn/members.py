"""The members of an automatic training: their plans, and their training in any process."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from setrnn.config import Config
from setrnn.data.prepared import Prepared
from setrnn.methods import find_method
from setrnn.progress import OnProgress, Progress
from setrnn.tagging.learn.member_candidates import Candidate
from setrnn.tagging.learn.train import train_uncalibrated
from setrnn.tagging.tagger import Tagger
from setrnn.training.run_folder import has_run, only_trainer, run_folder_of
from setrnn.training.start import TrainOptions


@dataclass(frozen=True)
class MemberPlan:
    """How long a member is trained. 0 epochs are those of a system fitted in one step."""

    epochs: int = 0
    valid_documents: int = 0  # measured after each epoch, at most
    is_short: bool = False  # whether the time decided these numbers


@dataclass(frozen=True)
class Planned:
    """A candidate with its data, and with settings that fit them; it can be sent to a process."""

    candidate: Candidate
    folder: Path  # of the prepared data
    config: Config

    @property
    def prepared(self) -> Prepared:
        """The data."""
        return Prepared(self.folder)

    def by(self, plan: MemberPlan) -> Planned:
        """Return the same with the numbers of a plan."""
        if not plan.epochs:
            return self
        training = replace(
            self.config.training, epochs=plan.epochs, valid_documents=plan.valid_documents
        )
        return replace(self, config=replace(self.config, training=training))


@dataclass(frozen=True)
class Member:
    """A trained member."""

    candidate: Candidate
    tagger: Tagger

    def describe(self) -> dict[str, Any]:
        """Return how it was trained, as plain JSON values."""
        notes, config = self.tagger.notes, self.tagger.config
        described: dict[str, Any] = {"name": self.candidate.name, "method": self.candidate.method}
        if self.candidate.is_network:
            described |= {
                "seed": config.seed,
                "epochs": config.training.epochs,
                "valid_documents": config.training.valid_documents,
                "epochs_done": len(notes["epochs"]),
                "best_epoch": notes["best_epoch"],
            }
        return {**described, "training_seconds": notes.get("training_seconds")}


def train_member(
    planned: Planned,
    place: Path | None,
    options: TrainOptions,
    asked_at: float,
    on_progress: OnProgress,
) -> Tagger:
    """Train a member, and save it if it has a place; a network that was stopped continues.

    The start of a process takes some of the time, and so does waiting for one that was left behind.
    """
    run = run_folder_of(place) if place is not None and planned.candidate.is_network else None
    options = replace(options, run_folder=run, on_progress=on_progress)
    with only_trainer(run, wait=True):
        if run is not None:
            options = replace(options, resume=has_run(run))
        if options.max_seconds is not None:
            seconds = options.max_seconds - (time.time() - asked_at)
            options = replace(options, max_seconds=seconds)
        method = find_method(planned.candidate.method)
        return train_uncalibrated(planned.prepared, method, planned.config, options, place)


def work_on_member(
    planned: Planned, place: Path, options: TrainOptions, asked_at: float, on_progress: OnProgress
) -> None:
    """Train a member in a process of its own, which leaves its folder."""
    train_member(planned, place, options, asked_at, on_progress)


def name_member(name: str, on_progress: OnProgress) -> OnProgress:
    """Return a callback that names the member in what it reports."""

    def report(event: Progress) -> None:
        on_progress(replace(event, activity=f"{event.activity} {name}"))

    return report
