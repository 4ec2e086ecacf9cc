"""Products of weights alone, which a network that is not trained any more computes once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


class WeightProducts:
    """Products of weights alone: a loaded network computes them once, in inference mode.

    A network in training computes them each time: not every operation that changes weights in
    place can be noticed. A copy starts like that, without products.
    """

    def __init__(self) -> None:
        self.are_kept = False
        self._kept: tuple[list[Tensor], list[int], tuple[Tensor, ...]] | None = None

    def __reduce__(self) -> tuple[type[WeightProducts], tuple[()]]:
        return WeightProducts, ()

    @property
    def will_keep(self) -> bool:
        """Whether products that are computed now are kept."""
        return self.are_kept and torch.is_inference_mode_enabled()

    def get(
        self, weights: Sequence[Tensor], multiply: Callable[[], tuple[Tensor, ...]]
    ) -> tuple[Tensor, ...]:
        """Return the products of these weights."""
        if not self.will_keep or any(each.is_inference() for each in weights):
            return multiply()
        versions = [each._version for each in weights]
        if self._kept is not None:
            sources, of_versions, products = self._kept
            is_same = all(one is other for one, other in zip(sources, weights, strict=True))
            if is_same and of_versions == versions:
                return products
        products = multiply()
        self._kept = (list(weights), versions, products)
        return products


def keep_products(network: nn.Module) -> None:
    """Keep the products of weights of a network that is not trained any more."""
    for module in network.modules():
        for each in vars(module).values():
            if isinstance(each, WeightProducts):
                each.are_kept = True
