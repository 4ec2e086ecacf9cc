"""One search over sets, against every set of a few labels; its certificate never lies."""

import pytest
import torch

from brute_force_sequences import TEXTS, as_tuple, batch_of, set_log_probs, tiny_network
from setrnn.search.lattice import merge_equal, search_sets

ROUNDING = 1e-5


def order_free(n_labels=5, seed=0, **settings):
    network = tiny_network("order-free", n_labels=n_labels, seed=seed, **settings)
    return network.decoder, network.encode(batch_of())


def truths(decoder, encoding):
    """{set: p} for each document."""
    every = set_log_probs(decoder, encoding)
    return [
        {labels: float(log_prob[row].exp()) for labels, log_prob in every.items()}
        for row in range(len(TEXTS))
    ]


def found_sets(found, row):
    sets = [
        (frozenset(as_tuple(labels)), float(log_prob.exp()))
        for labels, log_prob in zip(found.labels[row], found.log_probs[row], strict=True)
        if log_prob > -torch.inf
    ]
    assert len(dict(sets)) == len(sets), "a set was found twice"
    assert sets == sorted(sets, key=lambda each: -each[1]), "probabilities must fall"
    return dict(sets)


@pytest.mark.parametrize("seed", range(3))
def test_a_search_as_wide_as_the_space_finds_every_set_with_its_probability(seed):
    decoder, encoding = order_free(seed=seed)
    found = search_sets(decoder, encoding, width=64, max_labels=5, n_sets=32)
    for row, truth in enumerate(truths(decoder, encoding)):
        sets = found_sets(found, row)
        assert sets.keys() == truth.keys()
        assert all(abs(sets[each] - truth[each]) < ROUNDING for each in truth)
    torch.testing.assert_close(found.pruned, torch.zeros(len(TEXTS)), atol=ROUNDING, rtol=0)
    assert found.is_proved.all()


@pytest.mark.parametrize("n_labels", [3, 4, 6])
@pytest.mark.parametrize("width", [1, 2, 3, 6])
@pytest.mark.parametrize("max_labels", [1, 2, 50])
def test_the_certificate_never_lies(n_labels, width, max_labels):
    """No set is more probable than the best by more than what was pruned, if it was proved."""
    for seed in range(4):
        decoder, encoding = order_free(n_labels, seed)
        found = search_sets(decoder, encoding, width, max_labels)
        for row, truth in enumerate(truths(decoder, encoding)):
            best, found_prob = next(iter(found_sets(found, row).items()))
            pruned = float(found.pruned[row])
            for labels, prob in found_sets(found, row).items():
                assert prob <= truth[labels] + ROUNDING, "what was found is a part of the truth"
                assert truth[labels] <= prob + pruned + ROUNDING or len(labels) == max_labels
            if found.is_proved[row]:
                most = max(truth.values())
                assert most <= found_prob + pruned + ROUNDING
                if pruned < ROUNDING:
                    assert truth[best] >= most - ROUNDING


def test_what_was_found_is_left_and_was_pruned_is_all_there_is():
    decoder, encoding = order_free(6)
    for width in (1, 3, 8):
        found = search_sets(decoder, encoding, width, 50, n_sets=64)  # to the last level
        total = found.log_probs.exp().sum(1) + found.pruned
        torch.testing.assert_close(total, torch.ones(len(TEXTS)), atol=1e-4, rtol=0)


def test_a_search_that_the_limit_cuts_off_may_prove_nothing():
    """All the probability may be on larger sets than are allowed."""
    decoder, encoding = order_free(6)
    with torch.no_grad():
        decoder.output.bias[-1] -= 20.0  # STOP comes last
    found = search_sets(decoder, encoding, 12, max_labels=2)
    assert not found.is_proved.any()


def test_the_neighbours_of_a_document_change_nothing():
    decoder, _ = order_free(6)
    network = tiny_network("order-free", n_labels=6)
    together = search_sets(network.decoder, network.encode(batch_of()), 4, 50)
    for row, text in enumerate(TEXTS):
        alone = search_sets(network.decoder, network.encode(batch_of([text])), 4, 50)
        S = alone.labels.shape[2]
        assert torch.equal(alone.labels[0], together.labels[row][:, :S])
        torch.testing.assert_close(alone.log_probs[0], together.log_probs[row])
        torch.testing.assert_close(alone.pruned[0], together.pruned[row], atol=1e-5, rtol=0)
        assert alone.is_proved[0] == together.is_proved[row]


def test_equal_keys_are_added_up():
    keys = torch.tensor([[7, 3, 7, 5, 3, 7]])
    log_masses = torch.tensor([[0.1, 0.2, 0.15, 0.3, 0.05, 0.01]]).log()
    sums, where = merge_equal(keys, log_masses, 3)
    torch.testing.assert_close(sums.exp(), torch.tensor([[0.3, 0.26, 0.25]]))
    assert keys.gather(1, where).tolist() == [[5, 7, 3]]


def test_what_has_no_mass_stays_without():
    sums, where = merge_equal(
        torch.zeros(1, 4, dtype=torch.long), torch.full((1, 4), -torch.inf), 2
    )
    assert (sums == -torch.inf).all()
    assert ((where >= 0) & (where < 4)).all()
