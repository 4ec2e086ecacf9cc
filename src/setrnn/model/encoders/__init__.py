"""Encoders: one architecture per file. To add one, add a line to ENCODERS."""

from __future__ import annotations

from setrnn.errors import ConfigError, nearest_name
from setrnn.model.encoders.gru import GRUEncoder
from setrnn.model.encoders.transformer import TransformerEncoder
from setrnn.model.interfaces import Encoder

# By the names that encoder.name may have.
ENCODERS: dict[str, type[Encoder]] = {
    "gru": GRUEncoder,
    "transformer": TransformerEncoder,
}


def find_encoder(name: str) -> type[Encoder]:
    """Return the class of an encoder by its name."""
    if name not in ENCODERS:
        raise ConfigError(f"'encoder.name' has no choice '{name}'. {nearest_name(name, ENCODERS)}")
    return ENCODERS[name]


__all__ = ["ENCODERS", "GRUEncoder", "TransformerEncoder", "find_encoder"]
