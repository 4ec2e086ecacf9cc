"""Measure how fast a network trains and predicts, on its first batches."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from setrnn.config import Config
from setrnn.data.batches import even_rows
from setrnn.data.prepared import Prepared
from setrnn.methods import Method
from setrnn.systems.registry import find_system
from setrnn.systems.rules import MANY_SETS
from setrnn.systems.system import System
from setrnn.training.start import TrainOptions, make_trainer
from setrnn.training.validation import has_valid

TIMED_DOCUMENTS = 32


@dataclass(frozen=True)
class Speed:
    """The seconds that a network takes per document."""

    training: float
    predicting: float  # on valid; 0 without a valid part


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
