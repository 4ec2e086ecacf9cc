"""Algorithm 3, completion and the probability of a set, against brute force over all sets."""

import pytest
import torch

from brute_force_sequences import (
    EVERY_DECODER,
    TEXTS,
    TableDecoder,
    UniformOrderDecoder,
    all_sets,
    as_tuple,
    documents,
    encoded,
    found_sets,
    label_rows,
    set_log_probs,
)
from setrnn.search.beam_search import Sequences, beam_search
from setrnn.search.set_search import (
    distinct_sets,
    most_probable_completions,
    most_probable_sets,
    set_log_prob,
)

EVERYTHING = 1_000
# Known of each document: right, wrong. One has all labels known, one none.
PRESENT = [(1, 3), (), (0, 2), ()]
ABSENT = [(0,), (), (1, 3), (2, 0)]


@EVERY_DECODER
@pytest.mark.parametrize("seed", range(3))
def test_a_full_beam_finds_the_most_probable_set_and_ranks_all(decoder, seed):
    decoder, encoding = encoded(decoder, seed=seed)
    truth = set_log_probs(decoder, encoding)
    scored = most_probable_sets(decoder, encoding, EVERYTHING, max_labels=50)
    for document in range(len(TEXTS)):
        found = found_sets(scored, document)
        assert next(iter(found)) == max(truth, key=lambda labels: float(truth[labels][document]))
        assert set(found) == set(truth)
        for labels, log_prob in found.items():
            assert log_prob == pytest.approx(float(truth[labels][document]), abs=1e-4)
        assert sum(torch.tensor(list(found.values())).exp()) == pytest.approx(1, abs=1e-4)


@EVERY_DECODER
def test_a_search_as_wide_as_the_orders_gives_the_exact_set_probability(decoder):
    decoder, encoding = encoded(decoder)
    truth = set_log_probs(decoder, encoding)
    label_sets = label_rows(all_sets(4)).expand(len(TEXTS), -1, -1)
    found = set_log_prob(decoder, encoding, label_sets, beam_width=24)
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


# Sets that fit known labels.


def complete(decoder, encoding, present, absent, beam_width=EVERYTHING, max_labels=50):
    known = label_rows(present), label_rows(absent)
    return most_probable_completions(decoder, encoding, *known, beam_width, max_labels)


def fitting(truth, document, max_labels):
    """{set: log p} of the sets that fit what is known of a document."""
    return {
        labels: float(log_prob[document])
        for labels, log_prob in truth.items()
        if labels >= set(PRESENT[document])
        and not labels & set(ABSENT[document])
        and len(labels) <= max_labels
    }


@EVERY_DECODER
@pytest.mark.parametrize("max_labels", [2, 3, 50])
def test_a_full_beam_finds_all_sets_that_fit_with_their_own_probability(decoder, max_labels):
    decoder, encoding = encoded(decoder, seed=max_labels)
    truth = set_log_probs(decoder, encoding)
    scored = complete(decoder, encoding, PRESENT, ABSENT, max_labels=max_labels)
    for document in range(len(TEXTS)):
        expected = fitting(truth, document, max_labels)
        found = found_sets(scored, document)
        assert found == pytest.approx(expected, abs=1e-4)
        assert next(iter(found)) == max(expected, key=expected.get)


@pytest.mark.parametrize("beam_width", [1, 2, 5])
def test_a_narrow_beam_finds_sets_that_fit_and_a_lower_bound_of_each(beam_width):
    n = 20
    decoder, encoding = TableDecoder(4, n_documents=n), documents(n)
    truth = set_log_probs(decoder, encoding)
    scored = complete(decoder, encoding, [(1, 3)] * n, [(0,)] * n, beam_width)
    for document in range(n):
        found = found_sets(scored, document)
        assert 1 <= len(found) <= 2 * beam_width
        for labels, log_prob in found.items():
            assert labels >= {1, 3}
            assert 0 not in labels
            assert log_prob <= float(truth[labels][document]) + 1e-4


def test_sets_whose_best_orders_have_the_known_label_late_are_found_too():
    """A beam of one that begins with the known label misses what the free one finds."""
    decoder = TableDecoder(3, spread=0.1)
    decoder.table[:] = -5.0
    first, second = 4 ** torch.arange(2)
    decoder.table[0, 0, 0] = 5.0  # 0 is emitted first,
    decoder.table[0, first, 1] = 5.0  # then 1,
    decoder.table[0, first + 2 * second, 3] = 5.0  # then STOP;
    decoder.table[0, 2 * first, 3] = 5.0  # after 1 alone, STOP
    scored = complete(decoder, documents(), [(1,)], [()], beam_width=1)
    assert set(found_sets(scored, 0)) == {frozenset({0, 1}), frozenset({1})}
    assert as_tuple(scored.labels[0, 0]) == (0, 1)


def test_the_first_labels_of_a_search_come_first_in_any_order():
    decoder = TableDecoder(4)
    choices = torch.arange(4)[None, None]
    first = torch.tensor([[[False, True, False, True]]])
    found = beam_search(decoder, documents(), choices, EVERYTHING, False, 50, first)
    emitted = [
        as_tuple(row)
        for row, log_prob in zip(found.labels[0, 0], found.log_probs[0, 0], strict=True)
        if log_prob > -torch.inf
    ]
    assert {frozenset(sequence[:2]) for sequence in emitted} == {frozenset({1, 3})}
    assert len(set(emitted)) == len(emitted) == 2 * (1 + 2 + 2)
