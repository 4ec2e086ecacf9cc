"""Decoders: one architecture a file."""

from setrnn.model.decoders.rnn import RNNDecoder
from setrnn.model.decoders.sgm import SGMDecoder
from setrnn.model.decoders.sigmoid import SigmoidDecoder

# They emit labels one by one.
DECODERS = {"rnn": RNNDecoder, "sgm": SGMDecoder}
# They score each label by itself.
INDEPENDENT_DECODERS = {"sigmoid": SigmoidDecoder}

__all__ = ["DECODERS", "INDEPENDENT_DECODERS", "RNNDecoder", "SGMDecoder", "SigmoidDecoder"]
