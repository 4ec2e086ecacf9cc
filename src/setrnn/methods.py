"""The named systems: what each trains, how it predicts, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from setrnn.config import Config
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError, nearest_name
from setrnn.objective_words import OBJECTIVE_WORDS
from setrnn.systems.classical import BASELINES
from setrnn.systems.classical.system import ClassicalSystem
from setrnn.systems.known import Known
from setrnn.systems.rules import SetCandidates, find_rule
from setrnn.training.options import TrainOptions
from setrnn.training.recipe import Recipe

__all__ = ["METHODS", "Method", "System", "TrainOptions", "Trained", "find_method"]

Arrays = Mapping[str, npt.NDArray[Any]]


class System(Protocol):
    """A trained system: rows of token ids to label sets with probabilities."""

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document, or the sets of its best sequences.

        The `n_sets` best, where there are so many; more where they cost nothing. Of documents
        with known labels, the best of the sets that fit; what is known only forbids: each set
        keeps its p(set | x).
        """

    def set_log_probs(
        self, tokens: Ragged, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G)."""

    def marginals(
        self, tokens: Ragged, candidates: SetCandidates | None = None
    ) -> npt.NDArray[np.float32]:
        """Return p(label | document), documents x labels; sets found before save time."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learned, by name."""


@dataclass(frozen=True)
class Trained:
    """A trained system, and what is worth noting of its training."""

    system: System
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A system: its objectives in the words of the paper's Table 1, its rule, its two makers."""

    name: str
    training: str
    prediction: str
    rule: str  # how the paper predicts with it
    train: Callable[[Prepared, Config, TrainOptions], Trained]
    rebuild: Callable[[Arrays, Config, str], System]  # on a device
    recipe: Recipe | None = None  # of a network

    @property
    def is_neural(self) -> bool:
        """Whether it is a network: trained in epochs, on a device, with a run to go on with."""
        return self.recipe is not None

    @property
    def emits_sequences(self) -> bool:
        """Whether it emits labels one by one."""
        return self.recipe is not None and self.recipe.emits_sequences

    def check(self, config: Config) -> None:
        """Refuse settings it cannot be trained with, before any data is read."""
        if self.is_neural:
            from setrnn.model.encoders import find_encoder

            find_encoder(config.encoder.name).check(config)

    def rule_or_own(self, rule: str | None) -> str:
        """Return the rule, or its own where none is given; refuse one it cannot predict by."""
        chosen = self.rule if rule is None else rule
        if find_rule(chosen).source == "sequences" and not self.emits_sequences:
            raise ConfigError(
                f"Rule '{chosen}' needs a system that emits labels one by one, and '{self.name}' "
                "does not. Use rule 'set', or train a recurrent system such as set-rnn."
            )
        return chosen


def _classical(name: str) -> Method:
    def train(prepared: Prepared, config: Config, options: TrainOptions) -> Trained:
        model, settings = BASELINES[name], config.classical
        return Trained(ClassicalSystem.train(model, prepared, settings, options.on_labels))

    def rebuild(arrays: Arrays, config: Config, device: str) -> System:
        return ClassicalSystem.from_arrays(BASELINES[name], arrays)

    words = OBJECTIVE_WORDS[name]
    return Method(name, words.training, words.prediction, "set", train, rebuild)


def _neural(name: str, recipe: Recipe) -> Method:
    def train(prepared: Prepared, config: Config, options: TrainOptions) -> Trained:
        from setrnn.training.start import train_network

        system, notes = train_network(prepared, config, recipe, name, options)
        return Trained(system, notes)

    def rebuild(arrays: Arrays, config: Config, device: str) -> System:
        from setrnn.model.decoders import find_decoder
        from setrnn.model.devices import find_device
        from setrnn.systems import SYSTEMS

        system = SYSTEMS[find_decoder(recipe.decoder).emits]
        return system.from_arrays(arrays, config, find_device(device), recipe.decoder)

    words = OBJECTIVE_WORDS[name]
    return Method(name, words.training, words.prediction, recipe.rule, train, rebuild, recipe)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _classical("br"),
        _classical("br-support"),
        _classical("pcc"),
        _neural("seq2seq-rnn", Recipe("fixed-order")),
        _neural("vinyals-uniform", Recipe("random-order")),
        _neural("vinyals-sample", Recipe("sampled-order", first_objective="random-order")),
        _neural("vinyals-max", Recipe("best-order", first_objective="random-order")),
        _neural("vinyals-max-direct", Recipe("best-order")),
        _neural("sgm", Recipe("fixed-order", decoder="sgm")),
        _neural("set-rnn", Recipe("set-probability", rule="set")),
        # Beyond the paper.
        _neural("set-rnn-exact", Recipe("exact-set-probability", decoder="order-free", rule="set")),
        _neural("sigmoid", Recipe("independent-labels", decoder="sigmoid", rule="set")),
    )
}


def find_method(name: str) -> Method:
    """Return a system by its name."""
    if name not in METHODS:
        raise ConfigError(f"There is no method '{name}'. {nearest_name(name, METHODS)}")
    return METHODS[name]
