"""Decoders: one architecture per file. To add one, add a line to DECODERS."""

from __future__ import annotations

from setrnn.errors import ConfigError, nearest_name
from setrnn.model.decoders.order_free import OrderFreeDecoder
from setrnn.model.decoders.rnn import RNNDecoder
from setrnn.model.decoders.sgm import SGMDecoder
from setrnn.model.decoders.sigmoid import SigmoidDecoder
from setrnn.model.interfaces import AnyDecoder

DECODERS: dict[str, type[AnyDecoder]] = {
    "rnn": RNNDecoder,
    "sgm": SGMDecoder,
    "order-free": OrderFreeDecoder,
    "sigmoid": SigmoidDecoder,
}


def find_decoder(name: str) -> type[AnyDecoder]:
    """Return the class of a decoder by its name."""
    if name not in DECODERS:
        raise ConfigError(f"There is no decoder '{name}'. {nearest_name(name, DECODERS)}")
    return DECODERS[name]
