"""Decoders: one architecture a file."""

from setrnn.model.decoders.rnn import RNNDecoder
from setrnn.model.decoders.sgm import SGMDecoder

DECODERS = {"rnn": RNNDecoder, "sgm": SGMDecoder}

__all__ = ["DECODERS", "RNNDecoder", "SGMDecoder"]
