"""Products of many rows in parts, and products of weights that are kept."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from setrnn.model.linear import MANY_ROWS, Linear, WeightProducts


@pytest.mark.parametrize("bias", [True, False])
def test_a_product_in_parts_has_the_bits_of_one_product(bias):
    torch.manual_seed(0)
    plain = nn.Linear(24, 40, bias=bias)
    in_parts = Linear(24, 40, bias=bias)
    in_parts.load_state_dict(plain.state_dict())
    inputs = torch.randn(3, MANY_ROWS // 2 + 7, 24)
    found = []
    for layer in (plain, in_parts):
        given = inputs.clone().requires_grad_()
        outputs = layer(given)
        outputs.pow(2).sum().backward()
        found.append([outputs, given.grad, *(each.grad for each in layer.parameters())])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


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
