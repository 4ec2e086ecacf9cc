"""One run of a comparison: train, measure by every rule, and make the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setrnn.compare.records import Record
from setrnn.config import Config

OnProgress = Callable[[str, float], None]  # what it does, and which share of the run is done


@dataclass(frozen=True)
class Task:
    """All that a run needs to know; it goes to another process."""

    prepared: Path  # the prepared data, word vectors made
    folder: Path  # of the comparison
    method: str
    seed: int
    config: Config  # with the seed
    device: str = "auto"
    budget_seconds: float | None = None  # after which training ends with the best so far
    n_jobs: int = 1  # how many runs share the machine
    keep_model: bool = True
    treatment: Mapping[str, Any] = field(default_factory=dict)
    trials: Sequence[Mapping[str, Any]] = ()


def run(task: Task, on_progress: OnProgress = lambda activity, share: None) -> Record:
    """Train and measure; what a stopped run left in the folder is gone on with."""
    raise NotImplementedError
