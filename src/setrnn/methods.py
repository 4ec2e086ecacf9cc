"""The named systems: what each trains, how it predicts, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from setrnn.baselines import BASELINES
from setrnn.baselines.system import ClassicalSystem
from setrnn.config import Config
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.decoding.candidates import SetCandidates
from setrnn.errors import ConfigError, nearest_name


class System(Protocol):
    """A trained system: rows of token ids to label sets with probabilities."""

    def candidates(self, tokens: Ragged, n_sets: int) -> SetCandidates:
        """Find the most probable sets of each document."""

    def marginals(self, tokens: Ragged) -> npt.NDArray[np.float32]:
        """Return p(label | document), documents x labels."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learned, by name."""


Train = Callable[[Prepared, Config, Callable[[int], None]], System]
Rebuild = Callable[[Mapping[str, npt.NDArray[Any]]], System]


@dataclass(frozen=True)
class Method:
    """A system: its objectives in the words of the paper's Table 1, and its two makers."""

    name: str
    training: str
    prediction: str
    train: Train
    rebuild: Rebuild


def _classical(name: str, training: str, prediction: str) -> Method:
    def train(prepared: Prepared, config: Config, on_labels_done: Callable[[int], None]) -> System:
        return ClassicalSystem.train(BASELINES[name], prepared, config.classical, on_labels_done)

    rebuild = partial(ClassicalSystem.from_arrays, BASELINES[name])
    return Method(name, training, prediction, train, rebuild)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _classical(
            "br",
            "maximise Σ log p(y_l | x), each label by itself",
            "argmax over all sets of Π p(y_l | x)",
        ),
        _classical(
            "br-support",
            "as br",
            "argmax over the sets seen in training of Π p(y_l | x)",
        ),
        _classical(
            "pcc",
            "maximise Σ log p(y_l | x, y_1 … y_{l-1}), labels by falling frequency",
            "argmax over all sets of Π p(y_l | x, y_1 … y_{l-1}), by beam search",
        ),
    )
}


def find_method(name: str) -> Method:
    """Return a system by its name."""
    if name not in METHODS:
        raise ConfigError(f"There is no method '{name}'. {nearest_name(name, METHODS)}")
    return METHODS[name]
