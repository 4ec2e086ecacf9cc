"""Algorithm 3 and the probability of a set, against brute force over all sets."""

import pytest
import torch

from brute_force_sequences import (
    EVERY_DECODER,
    TEXTS,
    TableDecoder,
    UniformOrderDecoder,
    all_sets,
    as_tuple,
    batch_of,
    documents,
    found_sets,
    label_rows,
    set_log_probs,
    tiny_network,
)
from setrnn.search.beam_search import Sequences
from setrnn.search.set_search import distinct_sets, most_probable_sets, set_log_prob

EVERYTHING = 1_000


@EVERY_DECODER
@pytest.mark.parametrize("seed", range(3))
def test_a_full_beam_finds_the_most_probable_set_and_ranks_all(decoder, seed):
    network = tiny_network(decoder, seed=seed)
    encoding = network.encode(batch_of())
    truth = set_log_probs(network.decoder, encoding)
    scored = most_probable_sets(network.decoder, encoding, EVERYTHING, max_labels=50)
    for document in range(len(TEXTS)):
        found = found_sets(scored, document)
        assert next(iter(found)) == max(truth, key=lambda labels: float(truth[labels][document]))
        assert set(found) == set(truth)
        for labels, log_prob in found.items():
            assert log_prob == pytest.approx(float(truth[labels][document]), abs=1e-4)
        assert sum(torch.tensor(list(found.values())).exp()) == pytest.approx(1, abs=1e-4)


@EVERY_DECODER
def test_a_search_as_wide_as_the_orders_gives_the_exact_set_probability(decoder):
    network = tiny_network(decoder)
    encoding = network.encode(batch_of())
    truth = set_log_probs(network.decoder, encoding)
    label_sets = label_rows(all_sets(4)).expand(len(TEXTS), -1, -1)
    found = set_log_prob(network.decoder, encoding, label_sets, beam_width=24)
    expected = torch.stack([truth[labels] for labels in all_sets(4)], dim=1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beam_width", [1, 3, 8, 20])
def test_no_beam_gives_any_set_more_than_its_probability(beam_width):
    decoder, encoding = TableDecoder(4, n_documents=20), documents(20)
    truth = set_log_probs(decoder, encoding)
    scored = most_probable_sets(decoder, encoding, beam_width, max_labels=50)
    for document in range(20):
        found = found_sets(scored, document)
        assert 1 <= len(found) <= beam_width
        for labels, log_prob in found.items():
            assert log_prob <= float(truth[labels][document]) + 1e-4


def test_the_most_probable_set_need_not_be_that_of_the_best_sequence():
    """The paper's reason for Algorithm 3: many orders share what one sequence has alone."""
    truth = dict.fromkeys(all_sets(3), 0.01)
    truth |= {frozenset({0, 1, 2}): 0.6, frozenset({1}): 0.34}
    scored = most_probable_sets(UniformOrderDecoder(truth), documents(), 12, max_labels=50)
    assert as_tuple(scored.sequences.labels[0, 0, 0]) == (1,)
    assert as_tuple(scored.labels[0, 0]) == (0, 1, 2)


def test_sequences_of_one_set_are_one_set():
    labels = torch.tensor([[[[2, 0], [0, 2], [1, -1], [-1, -1], [0, 2], [1, -1]]]])
    scores = torch.tensor([[[-1.0, -2.0, -3.0, -4.0, -torch.inf, -torch.inf]]])
    sets, is_distinct = distinct_sets(Sequences(labels, scores))
    assert is_distinct.tolist() == [[True, False, True, True, False, False]]
    assert [as_tuple(row) for row in sets[0]] == [(0, 2), (), (1,), (), (), ()]
