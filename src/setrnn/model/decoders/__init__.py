"""Decoders: one architecture a file."""

from setrnn.model.decoders.order_free import OrderFreeDecoder
from setrnn.model.decoders.rnn import RNNDecoder
from setrnn.model.decoders.sgm import SGMDecoder

DECODERS: dict[str, type[RNNDecoder] | type[OrderFreeDecoder]] = {
    "rnn": RNNDecoder,
    "sgm": SGMDecoder,
    "order-free": OrderFreeDecoder,
}

__all__ = ["DECODERS", "OrderFreeDecoder", "RNNDecoder", "SGMDecoder"]
