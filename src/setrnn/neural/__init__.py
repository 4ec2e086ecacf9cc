"""Networks as systems: token ids in, label sets with probabilities out."""

from setrnn.neural.order_free import OrderFreeSystem
from setrnn.neural.recurrent import RecurrentSystem
from setrnn.neural.sigmoid import SigmoidSystem
from setrnn.neural.system import NeuralSystem

SYSTEMS: dict[str, type[NeuralSystem]] = {
    "rnn": RecurrentSystem,
    "sgm": RecurrentSystem,
    "order-free": OrderFreeSystem,
    "sigmoid": SigmoidSystem,
}

__all__ = ["SYSTEMS", "NeuralSystem", "OrderFreeSystem", "RecurrentSystem", "SigmoidSystem"]
