"""Networks as systems: token ids in, label sets with probabilities out."""

from setrnn.systems.independent import SigmoidSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.systems.order_free import OrderFreeSystem
from setrnn.systems.recurrent import RecurrentSystem

# By what the decoder emits.
SYSTEMS: dict[str, type[NeuralSystem]] = {
    "sequences": RecurrentSystem,
    "sets": OrderFreeSystem,
    "labels": SigmoidSystem,
}

__all__ = ["SYSTEMS", "NeuralSystem", "OrderFreeSystem", "RecurrentSystem", "SigmoidSystem"]
