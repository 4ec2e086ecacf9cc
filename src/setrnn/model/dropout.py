"""Dropout whose random numbers come from a generator of its own, so that threads can draw them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from setrnn.model.interfaces import AnyDecoder

_LEVELS = 1 << 16  # a number of 16 bits decides whether a value is dropped
_LOWEST = -(1 << 63)  # of the numbers of 64 bits


class Dropout(nn.Module):
    """Sets a share of the values to 0 in training, and scales the others.

    Without a generator it is `nn.Dropout`. With one, which must be on the CPU, four values share a
    random number, which is four times as fast. The share is then a multiple of 2^-16.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.generator: torch.Generator | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        """Drop some of the values, in training."""
        if self.generator is None or not self.training:
            return nn.functional.dropout(inputs, self.share, self.training)
        if not self.share:
            return inputs
        n_kept = max(round((1 - self.share) * _LEVELS), 1)  # of the levels
        numbers = torch.empty((inputs.numel() + 3) // 4, dtype=torch.int64)
        numbers.random_(_LOWEST, None, generator=self.generator)
        levels = numbers.view(torch.int16)[: inputs.numel()].view(inputs.shape)
        is_kept = levels < n_kept - _LEVELS // 2
        return inputs * is_kept.to(inputs.dtype).mul_(_LEVELS / n_kept)


@contextmanager
def without_dropout(decoder: AnyDecoder) -> Iterator[None]:
    """Turn the dropout of a decoder off for a search, and on again if it was on."""
    was_training = decoder.training
    decoder.train(False)
    try:
        yield
    finally:
        decoder.train(was_training)


def draw_from(generator: torch.Generator | None, network: nn.Module) -> None:
    """Let every dropout of a network draw from a generator; None for torch's own."""
    for module in network.modules():
        if isinstance(module, Dropout):
            module.generator = generator
