from itertools import permutations
from math import log

import numpy as np
import pytest
import torch

from setrnn.comparison.sequences import best_orders, normalised_entropies, order_entropies
from setrnn.data.batches import make_batch
from setrnn.data.ragged import Ragged


def test_the_entropy_of_known_distributions():
    log_probs = np.full((4, 6), -np.inf)
    log_probs[0] = np.log(0.01)  # six orders as likely, whatever their sum
    log_probs[1, 0] = np.log(0.5)  # one order
    log_probs[2, :2] = np.log(0.2)  # two of six
    log_probs[3, 0] = 0.0  # one label: it has one order
    found = normalised_entropies(log_probs, np.array([3, 3, 3, 1]))
    assert found[:2] == [1.0, 0.0]
    assert found[2] == pytest.approx(log(2) / log(6), abs=1e-5)
    assert found[3] is None


@pytest.mark.parametrize("method", ["set-rnn", "sgm", "set-rnn-exact"])
def test_the_best_order_and_the_entropy_are_those_of_all_orders(taggers, small_prepared, method):
    system = taggers[method].system
    test = small_prepared.split("test")
    known = [
        row.tolist() if (row < len(small_prepared.labels)).all() else [] for row in test.labels
    ]
    rows = [number for number, row in enumerate(known) if len(row) == 3][:4]
    tokens = Ragged.from_lists([test.tokens[row].tolist() for row in rows])
    sets = Ragged.from_lists([known[row] for row in rows])
    orders, entropies = best_orders(system, tokens, sets), order_entropies(system, tokens, sets)
    for number, row in enumerate(rows):
        log_probs = {
            order: _log_prob(system, test.tokens.rows(row, row + 1), order)
            for order in permutations(known[row])
        }
        assert tuple(orders[number]) == max(log_probs, key=log_probs.get)
        probs = np.exp(list(log_probs.values()))
        probs /= probs.sum()
        expected = -(probs * np.log(probs)).sum() / log(6)
        assert entropies[number] == pytest.approx(expected, abs=1e-4)


@torch.inference_mode()
def _log_prob(system, tokens, order):
    """Sum the steps of a sequence."""
    decoder = system.network.decoder
    encoding = system.network.encode(make_batch(tokens, None, np.zeros(1, dtype=np.int64)))
    state, total = decoder.start(encoding), 0.0
    previous = torch.full((1, 1), decoder.n_labels)
    for label in [*order, decoder.n_labels]:
        log_probs, state = decoder.step(encoding, state, previous)
        total += float(log_probs[0, 0, label])
        previous = torch.full((1, 1), label)
    return total
