"""The order-free system: exact sums of the best sets, in parts of any size."""

from dataclasses import replace

import numpy as np
import pytest
from test_recurrent import TOKENS, make_system

from brute_force import found_sets
from brute_force_sequences import TEXTS, batch_of, set_log_probs, tiny_network
from setrnn.systems import order_free

ALL_SETS = np.array(
    [[[-1, -1, -1], [0, -1, -1], [1, 3, -1], [0, 2, 3], [1, 2, 3]]] * len(TEXTS), dtype=np.int32
)


@pytest.mark.parametrize("beam_width", [1, 2, 4])
def test_the_best_sets_have_their_exact_probability(beam_width):
    system = make_system("order-free", beam_width=beam_width)
    truth = set_log_probs(system.network.decoder, system.network.encode(batch_of()))
    found = system.candidates(TOKENS, 1)
    for document in range(len(TEXTS)):
        best = list(found_sets(found, document).items())[: system.config.search.exact_sets]
        for labels, prob in best:
            expected = float(truth[frozenset(labels)][document].exp())
            assert prob == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("max_subsets", "max_memory"), [(1, 2**26), (9, 2**26), (65_536, 1)])
def test_how_sets_are_parted_changes_nothing(max_subsets, max_memory, monkeypatch):
    system = make_system("order-free", beam_width=4)
    whole = system.set_log_probs(TOKENS, ALL_SETS)
    monkeypatch.setattr(order_free, "MAX_SUBSETS", max_subsets)
    monkeypatch.setattr(order_free, "MAX_MEMORY", max_memory)
    np.testing.assert_allclose(system.set_log_probs(TOKENS, ALL_SETS), whole, rtol=1e-5)


def test_more_labels_than_can_be_summed_have_no_probability():
    system = replace(
        make_system("order-free", beam_width=2), network=tiny_network("order-free", n_labels=70)
    )
    sets = np.full((len(TEXTS), 2, 70), -1, dtype=np.int32)
    sets[:, 0] = np.arange(70)
    sets[:, 1, :62] = np.arange(62)
    found = system.set_log_probs(TOKENS, sets)
    assert (found[:, 0] == -np.inf).all()
    assert np.isfinite(found[:, 1]).all()
