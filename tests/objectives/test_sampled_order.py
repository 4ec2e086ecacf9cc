"""Orders drawn from the model, restricted to a set, against their distribution."""

from collections import Counter
from itertools import permutations

import pytest
import torch
from scipy.stats import chisquare

from brute_force_sequences import TableDecoder, as_tuple, documents, label_rows
from setrnn.objectives.sampled_order import sample_orders

LABEL_SETS = [(0, 1, 3), (1, 2), (3,), ()]


def restricted_probability(decoder, document, order):
    """p of drawing an order: at each step, the label's share among those of the set left."""
    probability = 1.0
    for step, label in enumerate(order):
        probs = decoder.next_log_probs(document, order[:step]).exp()
        probability *= float(probs[label] / probs[list(order[step:])].sum())
    return probability


def test_orders_are_drawn_as_often_as_the_restricted_model_says():
    torch.manual_seed(0)
    n_orders = 4_000
    decoder = TableDecoder(4, n_documents=4, spread=1.0)
    orders = sample_orders(decoder, documents(4), label_rows(LABEL_SETS), n_orders)
    for document, labels in enumerate(LABEL_SETS):
        drawn = Counter(map(as_tuple, orders[document]))
        every = list(permutations(labels))
        expected = [restricted_probability(decoder, document, order) for order in every]
        assert sum(expected) == pytest.approx(1)
        found = [drawn[order] for order in every]
        assert sum(found) == n_orders
        if len(every) > 1:
            assert chisquare(found, [n_orders * p for p in expected]).pvalue > 0.001


def test_a_label_of_hardly_any_probability_is_drawn_when_it_must_be():
    decoder = TableDecoder(4)
    decoder.table[..., 2] = -80.0
    orders = sample_orders(decoder, documents(), label_rows([(0, 2, 3)]), 50)
    assert {as_tuple(order)[-1] for order in orders[0]} == {2}
