"""Encoders: one architecture a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from setrnn.config import ModelSettings
from setrnn.model.encoders.gru import GRUEncoder
from setrnn.model.encoders.transformer import TransformerEncoder

Encoder = GRUEncoder | TransformerEncoder
# Each takes what it begins with: vectors of words, or a pretrained transformer.
ENCODERS: dict[str, Callable[[Any, ModelSettings], Encoder]] = {
    "gru": GRUEncoder,
    "transformer": TransformerEncoder,
}

__all__ = ["ENCODERS", "Encoder", "GRUEncoder", "TransformerEncoder"]
