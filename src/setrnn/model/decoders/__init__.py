"""Decoders: one architecture a file."""

from setrnn.model.decoders.order_free import OrderFreeDecoder
from setrnn.model.decoders.rnn import RNNDecoder
from setrnn.model.decoders.sgm import SGMDecoder
from setrnn.model.decoders.sigmoid import SigmoidDecoder

# They emit labels one by one.
DECODERS: dict[str, type[RNNDecoder] | type[OrderFreeDecoder]] = {
    "rnn": RNNDecoder,
    "sgm": SGMDecoder,
    "order-free": OrderFreeDecoder,
}
# They score each label by itself.
INDEPENDENT_DECODERS = {"sigmoid": SigmoidDecoder}

__all__ = [
    "DECODERS",
    "INDEPENDENT_DECODERS",
    "OrderFreeDecoder",
    "RNNDecoder",
    "SGMDecoder",
    "SigmoidDecoder",
]
