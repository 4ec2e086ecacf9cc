"""What those who watch a training run are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where training is; with scores, an epoch has ended."""

    epoch: int  # from 1
    n_epochs: int
    activity: str  # the objective, or "measuring"
    n_documents: int  # trained on so far, in all epochs
    n_total: int  # if no epoch is left out
    loss: float  # the mean of the epoch so far
    documents_per_second: float  # in training
    scores: Mapping[str, float] | None = None  # on valid; empty without a valid part
    is_best: bool = False


OnProgress = Callable[[Progress], None]
