"""Plan an automatic training: how many epochs, valid documents and mixed documents fit the time.

If all fit, nothing depends on the clock: then one seed gives one model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from setrnn.config import Config, TrainingSettings, VectorSettings
from setrnn.data.batches import even_rows
from setrnn.data.prepared import Prepared
from setrnn.data.vectors import vectors_file
from setrnn.methods import Method
from setrnn.progress import log
from setrnn.systems.registry import find_system
from setrnn.systems.rules import MANY_SETS
from setrnn.systems.system import System
from setrnn.tagging.learn.data import MINUTE
from setrnn.tagging.learn.members import MemberPlan
from setrnn.tagging.learn.mixture_weights import MOST_TO_FIT
from setrnn.training.start import TrainOptions, make_trainer
from setrnn.training.validation import has_valid

SAFETY = 0.85  # the share of the time left that is planned: other programs may use the cores
FIRST_SHARE = 0.6  # of the time left, for the first of several networks
LEAST_EPOCHS, LEAST_SHARE = 3, 0.3  # of a network; and of its epochs without a limit
MEASURING_SHARE, LEAST_MEASURED = 0.25, 300  # of the time of training; documents per epoch
MIXING_PASSES = 4  # over the valid part, by each member: candidates, weights, calibration
MIXING_SHARE, LEAST_MIXED = 0.2, 300  # of the budget; documents
WORDS_PER_SECOND = {"ppmi": 150_000, "word2vec": 50_000}  # on one core, about
VECTORS_SHARE = 0.3  # of the time left, at most, for word vectors
CLASSICAL_SHARE = 0.1  # likewise, for the second classical system
START_SECONDS = 8.0  # of a process that trains a network, about
TIMED_DOCUMENTS = 32


@dataclass(frozen=True)
class Speed:
    """The seconds that a network takes per document."""

    training: float
    predicting: float  # on valid; 0 without a valid part


@dataclass
class Planner:
    """Decides what fits the time that is left; without a limit, all does."""

    limit: float | None  # seconds
    started: float  # by `time.perf_counter`, earlier by what was used before a resume
    n_train: int
    n_valid: int
    start_seconds: float = 0.0  # of a process that trains a network; 0 if it is this one
    predicting: float = 0.0  # seconds per document, of all members so far
    expected: float = 0.0  # the same of the networks in training

    def used(self) -> float:
        """Return the seconds used, including those before a resume."""
        return time.perf_counter() - self.started

    def left(self) -> float:
        """Return the seconds left."""
        return math.inf if self.limit is None else self.limit - self.used()

    def left_to_train(self) -> float:
        """Return the seconds left for training, without those of mixing."""
        if self.limit is None:
            return math.inf
        predicting = self.predicting + self.expected
        return self.left() - MIXING_PASSES * predicting * self._fit_mixed(predicting)

    def has_time_for_vectors(self, prepared: Prepared, vectors: VectorSettings) -> bool:
        """Return whether word vectors can be learned, or were learned before."""
        if vectors_file(prepared, vectors).exists():
            return True
        n_words = len(prepared.split("train").tokens.values)
        n_passes = vectors.epochs if vectors.source == "word2vec" else 1
        seconds = n_passes * n_words / WORDS_PER_SECOND[vectors.source]
        return seconds <= VECTORS_SHARE * self.left()

    def has_time_for_another(self, classical_seconds: Sequence[float]) -> bool:
        """Return whether the next classical system fits: it takes up to three times the first.

        The first one always does, because a mixture needs a member.
        """
        if not classical_seconds:
            return True
        return 3 * max(classical_seconds) <= CLASSICAL_SHARE * self.left_to_train()

    def plan(
        self, networks: Mapping[str, tuple[TrainingSettings, Speed]], n_groups: int
    ) -> dict[str, MemberPlan | str]:
        """Return the plan of each network, or why there is none.

        Args:
            networks: those that are trained at the same time, by name, with their speeds.
            n_groups: how many such groups there are still, this one included.
        """
        plans: dict[str, MemberPlan | str] = {}
        self.expected = sum(speed.predicting for _, speed in networks.values())
        full = [
            each.epochs * self._time_epoch(speed, each.valid_documents)
            for each, speed in networks.values()
        ]
        training = n_groups * (max(full) + self.start_seconds)
        predicting = self.predicting + n_groups * self.expected
        is_enough = training + MIXING_PASSES * predicting * self.n_valid <= SAFETY * self.left()
        seconds = self.left_to_train() - self.start_seconds
        others_follow = len(networks) == 1 and n_groups > 1
        for name, (settings, speed) in networks.items():
            n_epochs, n_measured = settings.epochs, settings.valid_documents
            if not is_enough:
                n_measured = self._fit_measured(speed, n_measured)
            epoch_seconds = self._time_epoch(speed, n_measured)
            if not is_enough:
                n_epochs = fit_epochs(n_epochs, epoch_seconds, seconds, others_follow)
            if not n_epochs:
                n_least = least_epochs(settings.epochs)
                minutes = n_least * epoch_seconds / MINUTE
                plans[name] = f"{n_least} epochs would take about {minutes:.1f} minutes"
                continue
            is_short = (n_epochs, n_measured) != (settings.epochs, settings.valid_documents)
            plans[name] = MemberPlan(n_epochs, n_measured, is_short)
            of_full = "" if n_epochs == settings.epochs else f" of {settings.epochs}"
            log.info(
                f"{name}: {1 / speed.training:,.0f} documents/s, {n_epochs}{of_full} epochs, about "
                f"{n_epochs * epoch_seconds / MINUTE:.1f} minutes."
            )
        return plans

    def count_mixed(self) -> int:
        """Return the number of valid documents that the mixture is fitted on, in the time left."""
        if MIXING_PASSES * self.predicting * self.n_valid <= self.left():
            return self.n_valid
        return self._fit_mixed(self.predicting)

    def _fit_mixed(self, predicting: float) -> int:
        """Return how many documents can be mixed in the share of the budget that is for it."""
        assert self.limit is not None
        n_fit = int(MIXING_SHARE * self.limit / max(MIXING_PASSES * predicting, 1e-9))
        return min(self.n_valid, MOST_TO_FIT, max(n_fit, LEAST_MIXED))

    def _fit_measured(self, speed: Speed, n_most: int) -> int:
        """Return so few valid documents that measuring them takes a small share of an epoch."""
        n_fit = int(MEASURING_SHARE * speed.training * self.n_train / max(speed.predicting, 1e-9))
        n_fit = max(n_fit, LEAST_MEASURED)
        return n_most if n_fit >= min(self.n_valid, n_most) else n_fit

    def _time_epoch(self, speed: Speed, n_measured: int) -> float:
        """Return the seconds of an epoch with so many measured documents, at most."""
        return speed.training * self.n_train + speed.predicting * min(self.n_valid, n_measured)


def fit_epochs(
    n_full: int, epoch_seconds: float, seconds: float, others_follow: bool = False
) -> int:
    """Return how many epochs fit into the seconds, at most `n_full`; 0 if these are too few.

    If others follow, the first network leaves them a part of the time, unless it would then get
    less than half of its epochs.

    Example:
        >>> fit_epochs(20, 10.0, 1000.0), fit_epochs(20, 10.0, 150.0), fit_epochs(20, 10.0, 40.0)
        (20, 12, 0)
        >>> fit_epochs(20, 10.0, 250.0, others_follow=True)
        12
    """
    n_fit = int(SAFETY * seconds / epoch_seconds)
    n_shared = int(FIRST_SHARE * SAFETY * seconds / epoch_seconds)
    if others_follow and n_full / 2 <= n_shared < n_full:
        n_fit = n_shared
    return min(n_fit, n_full) if n_fit >= least_epochs(n_full) else 0


def least_epochs(n_full: int) -> int:
    """Return the least number of epochs with which a network is of use."""
    return min(n_full, max(LEAST_EPOCHS, round(LEAST_SHARE * n_full)))


def measure_speed(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions, seconds: float
) -> Speed:
    """Train a network on its first batches for some seconds, let it predict, and drop it."""
    config = replace(config, model=replace(config.model, wide="off"))  # fitting br takes longer
    trainer = make_trainer(method, prepared, config, options)
    training = trainer.time_steps(seconds)
    system = find_system(method)(trainer.network.eval(), config, trainer.device)
    return Speed(training, time_prediction(system, prepared))


def time_prediction(system: System, prepared: Prepared) -> float:
    """Return the seconds that a system takes per valid document, from an even sample of them.

    This is the work of all rules: many sets, and the marginals. A first document is not counted,
    because it takes longer. 0 without a valid part.
    """
    if not has_valid(prepared):
        return 0.0
    tokens = prepared.split("valid").tokens
    sample = tokens.take(even_rows(len(tokens), TIMED_DOCUMENTS))
    for rows in (sample.rows(0, 1), sample):
        start = time.perf_counter()
        system.marginals(rows, system.candidates(rows, MANY_SETS))
    return (time.perf_counter() - start) / len(sample)
