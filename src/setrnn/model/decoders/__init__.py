"""Decoders: one architecture per file. To add one, add a line to DECODERS."""

from __future__ import annotations

from setrnn.config import ModelSettings
from setrnn.errors import ConfigError, nearest_name
from setrnn.model.decoders.order_free import OrderFreeDecoder
from setrnn.model.decoders.rnn import RNNDecoder
from setrnn.model.decoders.sgm import SGMDecoder
from setrnn.model.decoders.sigmoid import SigmoidDecoder
from setrnn.model.decoders.stepwise import FeedingDecoder
from setrnn.model.interfaces import AnyDecoder

DECODERS: dict[str, type[AnyDecoder]] = {
    "rnn": RNNDecoder,
    "feeding": FeedingDecoder,  # "rnn" with model.context_input
    "sgm": SGMDecoder,
    "order-free": OrderFreeDecoder,
    "sigmoid": SigmoidDecoder,
}


def find_decoder(name: str, settings: ModelSettings | None = None) -> type[AnyDecoder]:
    """Return the class of a decoder by its name, and by settings that ask for a variant."""
    if name == "rnn" and settings is not None and settings.context_input:
        name = "feeding"
    if name not in DECODERS:
        raise ConfigError(f"There is no decoder '{name}'. {nearest_name(name, DECODERS)}")
    return DECODERS[name]
