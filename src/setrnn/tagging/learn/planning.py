"""Plan an automatic training: how many epochs, valid documents and mixed documents fit the time.

If all fit, nothing depends on the clock: then one seed gives one model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from setrnn.config import Config, VectorSettings
from setrnn.data.prepared import Prepared
from setrnn.data.vectors import vectors_file
from setrnn.tagging.learn.members import MemberPlan, Planned
from setrnn.tagging.learn.mixture_outputs import MOST_TO_FIT
from setrnn.training.speed import Speed

SAFETY = 0.85  # the share of the time left that is planned: other programs may use the cores
FIRST_SHARE = 0.6  # of the time left, for the first of several networks
LEAST_EPOCHS, LEAST_SHARE = 3, 0.3  # of a network; and of its epochs without a limit
MEASURING_SHARE, LEAST_MEASURED = 0.25, 300  # of the time of training; documents per epoch
MIXING_PASSES = 4  # over the valid part, by each member: candidates, weights, calibration
MIXING_SHARE, LEAST_MIXED = 0.2, 300  # of the budget; documents
WORDS_PER_SECOND = {"ppmi": 150_000, "word2vec": 50_000}  # on one core, about
VECTORS_SHARE = 0.3  # of the time left, at most, for word vectors
CLASSICAL_SHARE = 0.1  # likewise, for the second classical system
START_SECONDS = 8.0  # of a process that trains a network, until one was seen


@dataclass
class Clock:
    """The seconds used and left; without a limit, these are infinite."""

    limit: float | None
    started: float
    used_before: float = 0.0

    def used(self) -> float:
        """Return the seconds used, including those before a resume."""
        return time.perf_counter() - self.started + self.used_before

    def left(self) -> float:
        """Return the seconds left."""
        return math.inf if self.limit is None else self.limit - self.used()


@dataclass(frozen=True)
class Estimate:
    """The time that a network takes, for one number of valid documents measured per epoch."""

    epochs: int
    valid_documents: int
    epoch_seconds: float

    @property
    def seconds(self) -> float:
        """The seconds of the whole training."""
        return self.epochs * self.epoch_seconds


@dataclass
class Planner:
    """Decides what fits the time that is left."""

    clock: Clock
    n_valid: int
    start_seconds: float  # of a process that trains a network; 0 if it is this one
    predicting: float = 0.0  # seconds per document, of all members so far
    expected: float = 0.0  # the same of the networks in training

    def has_time_for_vectors(self, prepared: Prepared, vectors: VectorSettings) -> bool:
        """Return whether word vectors can be learned, or were learned before."""
        if vectors_file(prepared, vectors).exists():
            return True
        n_words = len(prepared.split("train").tokens.values)
        n_passes = vectors.epochs if vectors.source == "word2vec" else 1
        seconds = n_passes * n_words / WORDS_PER_SECOND[vectors.source]
        return seconds <= VECTORS_SHARE * self.clock.left()

    def has_time_for_another(self, classical_seconds: Sequence[float]) -> bool:
        """Return whether the next classical system fits: it takes up to three times the first.

        The first one always does, because a mixture needs a member.
        """
        if not classical_seconds:
            return True
        return 3 * max(classical_seconds) <= CLASSICAL_SHARE * self.seconds_left()

    def seconds_left(self) -> float:
        """Return the seconds left for training, without those of mixing."""
        if self.clock.limit is None:
            return math.inf
        predicting = self.predicting + self.expected
        return self.clock.left() - MIXING_PASSES * predicting * self._fit_mixed(predicting)

    def plan(
        self, networks: Sequence[tuple[Planned, Speed]], n_groups: int
    ) -> list[tuple[Estimate, MemberPlan | None]]:
        """Return the time of an epoch and the plan of each network, None if it does not fit.

        Args:
            networks: those that are trained at the same time, with their speeds.
            n_groups: how many such groups there are still, this one included.
        """
        full = [_estimate(each.config, each.prepared, speed) for each, speed in networks]
        self.expected = sum(speed.predicting for _, speed in networks)
        slowest = max((each.seconds for each in full), default=0.0) + self.start_seconds
        predicting = self.predicting + n_groups * self.expected
        mixing = MIXING_PASSES * predicting * self.n_valid
        if n_groups * slowest + mixing <= SAFETY * self.clock.left():
            return [(each, MemberPlan(each.epochs, each.valid_documents)) for each in full]
        seconds = self.seconds_left() - self.start_seconds
        others_follow = len(networks) == 1 and n_groups > 1
        plans: list[tuple[Estimate, MemberPlan | None]] = []
        for (each, speed), whole in zip(networks, full, strict=True):
            fitted = _estimate(_measure_less(each, speed), each.prepared, speed)
            n_epochs = fit_epochs(fitted.epochs, fitted.epoch_seconds, seconds, others_follow)
            if n_epochs is None:
                plans.append((fitted, None))
                continue
            n_measured = fitted.valid_documents
            is_short = n_epochs < whole.epochs or n_measured < whole.valid_documents
            plans.append((fitted, MemberPlan(n_epochs, n_measured, is_short)))
        return plans

    def count_mixed(self) -> int:
        """Return the number of valid documents that the mixture is fitted on, in the time left."""
        if MIXING_PASSES * self.predicting * self.n_valid <= self.clock.left():
            return self.n_valid
        return self._fit_mixed(self.predicting)

    def _fit_mixed(self, predicting: float) -> int:
        """Return how many documents can be mixed in the share of the budget that is for it."""
        assert self.clock.limit is not None
        n_fit = int(MIXING_SHARE * self.clock.limit / max(MIXING_PASSES * predicting, 1e-9))
        return min(self.n_valid, MOST_TO_FIT, max(n_fit, LEAST_MIXED))


def _estimate(config: Config, prepared: Prepared, speed: Speed) -> Estimate:
    n_documents: dict[str, int] = prepared.description["n_documents"]
    n_measured = min(n_documents.get("valid", 0), config.training.valid_documents)
    seconds = speed.training * n_documents["train"] + speed.predicting * n_measured
    return Estimate(config.training.epochs, config.training.valid_documents, seconds)


def _measure_less(planned: Planned, speed: Speed) -> Config:
    """Return the settings with so few valid documents that measuring takes a small share."""
    training = planned.config.training
    n_documents = planned.prepared.description["n_documents"]
    seconds = MEASURING_SHARE * speed.training * n_documents["train"]
    n_fit = int(seconds / max(speed.predicting, 1e-9))
    n_most = max(n_fit, LEAST_MEASURED)
    if n_most >= min(n_documents["valid"], training.valid_documents):
        return planned.config
    return replace(planned.config, training=replace(training, valid_documents=n_most))


def without_learned_vectors(config: Config) -> Config:
    """Return the settings with random word vectors."""
    return replace(config, vectors=replace(config.vectors, source="none"))


def fit_epochs(
    n_full: int, epoch_seconds: float, seconds: float, others_follow: bool = False
) -> int | None:
    """Return how many epochs fit into the seconds, at most `n_full`; None if these are too few.

    If others follow, the first network leaves them a part of the time, unless it would then get
    less than half of its epochs.

    Example:
        >>> fit_epochs(20, 10.0, 1000.0), fit_epochs(20, 10.0, 150.0), fit_epochs(20, 10.0, 40.0)
        (20, 12, None)
        >>> fit_epochs(20, 10.0, 250.0, others_follow=True)
        12
    """
    n_fit = int(SAFETY * seconds / epoch_seconds)
    n_shared = int(FIRST_SHARE * SAFETY * seconds / epoch_seconds)
    if others_follow and n_full / 2 <= n_shared < n_full:
        n_fit = n_shared
    return min(n_fit, n_full) if n_fit >= least_epochs(n_full) else None


def least_epochs(n_full: int) -> int:
    """Return the least number of epochs with which a network is of use."""
    return min(n_full, max(LEAST_EPOCHS, round(LEAST_SHARE * n_full)))
