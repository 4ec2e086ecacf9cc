"""Products of weights that are kept."""

from copy import deepcopy

import torch
from torch import nn

from setrnn.model.weight_products import WeightProducts


def test_products_of_weights_are_kept_until_a_weight_changes():
    weight, n_calls = nn.Parameter(torch.ones(2, 2)), []

    def double():
        n_calls.append(1)
        return (weight * 2,)

    kept = WeightProducts()
    kept.are_kept = True
    with torch.inference_mode():
        assert kept.get([weight], double)[0] is kept.get([weight], double)[0]
    assert len(n_calls) == 1
    with torch.no_grad():
        weight.add_(1.0)
    with torch.inference_mode():
        assert (kept.get([weight], double)[0] == 4).all()
        assert (deepcopy(kept).get([weight], double)[0] == 4).all()
    assert len(n_calls) == 3
    kept.get([weight], double)  # in training, a product must have gradients
    assert len(n_calls) == 4
