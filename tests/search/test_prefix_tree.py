"""The search in a tree of prefixes, against the search of all beams of all sets."""

import pytest
import torch

from brute_force_sequences import TEXTS, batch_of, tiny_network
from setrnn.search.beam_search import search_sequences
from setrnn.search.prefix_tree import PrefixTree, can_share_prefixes, score_in_tree, search_in_tree
from setrnn.search.set_search import most_probable_sets, score_sets

WIDTHS = pytest.mark.parametrize("width", [1, 3, 12])
SEEDS = pytest.mark.parametrize("seed", range(4))


def encode(seed):
    network = tiny_network("rnn", seed=seed)
    with torch.no_grad():
        return network.decoder, network.encode(batch_of())


def by_beams(decoder, encoding, width):
    sequences = search_sequences(decoder, encoding, width, 50)
    return score_sets(decoder, encoding, sequences, width)


@WIDTHS
@SEEDS
def test_the_tree_finds_what_a_search_of_all_beams_finds(seed, width):
    decoder, encoding = encode(seed)
    assert can_share_prefixes(decoder, encoding)
    expected = by_beams(decoder, encoding, width)
    found = most_probable_sets(decoder, encoding, width, 50)
    assert torch.equal(found.labels, expected.labels)
    assert torch.equal(found.sequences.labels, expected.sequences.labels)
    torch.testing.assert_close(found.log_probs, expected.log_probs)
    torch.testing.assert_close(found.sequences.log_probs, expected.sequences.log_probs)


@WIDTHS
@SEEDS
@pytest.mark.parametrize("n_sets", [1, 2])
def test_sets_left_out_are_none_of_the_best(seed, width, n_sets):
    decoder, encoding = encode(seed)
    expected = most_probable_sets(decoder, encoding, width, 50)
    found = most_probable_sets(decoder, encoding, width, 50, n_sets)
    assert torch.equal(found.labels[:, :n_sets], expected.labels[:, :n_sets])
    torch.testing.assert_close(found.log_probs[:, :n_sets], expected.log_probs[:, :n_sets])


def test_a_set_without_hope_is_dropped_before_its_orders_are_computed():
    decoder, encoding = encode(0)
    tree = PrefixTree(decoder, encoding)
    sets = torch.tensor([[[0, 1, 2], [1, 2, 3]]]).repeat(len(TEXTS), 1, 1)
    exact = score_in_tree(tree, sets, torch.zeros(len(TEXTS), 2), 12, 2)
    assert (exact > -torch.inf).all()
    # The first set is said to have all of the probability but a little.
    masses = torch.tensor([[0.999, 0.0]]).repeat(len(TEXTS), 1)
    tree = PrefixTree(decoder, encoding)
    least = torch.full((len(TEXTS),), 2.0)
    labels, found = search_in_tree(tree, torch.arange(len(TEXTS)), sets[:, 1], 12, 3, least)
    assert (found == -torch.inf).all()
    assert len(tree.levels) == 1
    first = score_in_tree(tree, sets, masses, 12, 1)[:, 0]
    torch.testing.assert_close(first, exact[:, 0])
