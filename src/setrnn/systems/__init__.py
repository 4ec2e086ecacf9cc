"""Networks as systems: token ids in, label sets with probabilities out."""

from setrnn.systems.independent import SigmoidSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.systems.order_free import OrderFreeSystem
from setrnn.systems.recurrent import RecurrentSystem

SYSTEMS: dict[str, type[NeuralSystem]] = {
    "rnn": RecurrentSystem,
    "sgm": RecurrentSystem,
    "order-free": OrderFreeSystem,
    "sigmoid": SigmoidSystem,
}

__all__ = ["SYSTEMS", "NeuralSystem", "OrderFreeSystem", "RecurrentSystem", "SigmoidSystem"]
