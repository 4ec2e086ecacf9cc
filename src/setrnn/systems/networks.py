"""The systems of networks, by what their decoder emits: they need torch, which loads slowly."""

from __future__ import annotations

from setrnn.methods import Method
from setrnn.model.decoders import find_decoder
from setrnn.systems.neural import IndependentSystem, NeuralSystem
from setrnn.systems.order_free import OrderFreeSystem
from setrnn.systems.recurrent import RecurrentSystem

NETWORKS: dict[str, type[NeuralSystem]] = {
    "sequences": RecurrentSystem,
    "sets": OrderFreeSystem,
    "labels": IndependentSystem,
}


def find_network(method: Method) -> type[NeuralSystem]:
    """Return the class of the system of a network's method."""
    return NETWORKS[find_decoder(method.decoder).emits]
