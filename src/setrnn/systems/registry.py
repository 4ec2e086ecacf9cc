"""The systems by name: the class of each method's system."""

from __future__ import annotations

from typing import Any

from setrnn.errors import ConfigError
from setrnn.methods import Method
from setrnn.systems.classical.br import BinaryRelevance, SupportInference
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.rules import find_rule

# By the name of their method; a network has the system of what its decoder emits.
SYSTEMS: dict[str, type[Any]] = {
    "br": BinaryRelevance,
    "br-support": SupportInference,
    "pcc": ClassifierChain,
    "mixture": MixtureSystem,
}


def find_system(method: Method) -> type[Any]:
    """Return the class of a method's system.

    Example:
        >>> from setrnn.methods import METHODS
        >>> find_system(METHODS["set-rnn-exact"]).__name__
        'OrderFreeSystem'
    """
    if not method.is_network:
        return SYSTEMS[method.name]
    # Only a network needs torch, which loads slowly.
    from setrnn.model.decoders import find_decoder
    from setrnn.systems.neural import IndependentSystem
    from setrnn.systems.recurrent import OrderFreeSystem, RecurrentSystem

    networks: dict[str, type[Any]] = {
        "sequences": RecurrentSystem,
        "sets": OrderFreeSystem,
        "labels": IndependentSystem,
    }
    return networks[find_decoder(method.decoder).emits]


def choose_rule(method: Method, rule: str | None) -> str:
    """Return the rule, or the rule of the method if None; raise ConfigError if it cannot use it."""
    chosen = method.rule if rule is None else rule
    if find_rule(chosen).source == "sequences" and not find_system(method).emits_sequences:
        raise ConfigError(
            f"Rule '{chosen}' needs a system that emits labels one by one, and '{method.name}' "
            "does not. Use rule 'set', or train a recurrent system such as set-rnn."
        )
    return chosen
