"""Encoders: one architecture a file."""

from setrnn.model.encoders.gru import GRUEncoder

ENCODERS = {"gru": GRUEncoder}

__all__ = ["ENCODERS", "GRUEncoder"]
