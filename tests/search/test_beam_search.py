"""Algorithm 1 against brute force and against a plain beam search over lists."""

from itertools import permutations
from math import factorial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brute_force_sequences import (
    EVERY_DECODER,
    TEXTS,
    PlainDecoder,
    TableDecoder,
    as_tuple,
    documents,
    encoded,
    label_rows,
    sequence_log_probs,
)
from setrnn.objectives.sampled_order import sample_orders
from setrnn.search.beam_search import beam_search, search_orders, search_sequences
from setrnn.search.set_search import most_probable_sets

EVERYTHING = 1_000  # a beam wider than all sequences of 4 or 5 labels


def found_sequences(sequences, document, search=0):
    """[(sequence, log p)] of one search, best first."""
    labels, scores = sequences.labels[document, search], sequences.log_probs[document, search]
    assert (scores[:-1] >= scores[1:]).all(), "probabilities must fall"
    found = [
        (as_tuple(row), float(score))
        for row, score in zip(labels, scores, strict=True)
        if score > -torch.inf
    ]
    assert len(dict(found)) == len(found), "a sequence was found twice"
    return found


def plain_beam_search(decoder, document, labels, beam_width, must_use_all, max_labels):
    """Algorithm 1 as the paper writes it, one sequence at a time."""
    beams = [((), 0.0, False)]
    while not all(is_finished for *_, is_finished in beams):
        grown = [beam for beam in beams if beam[2]]
        for sequence, score, _ in (beam for beam in beams if not beam[2]):
            log_probs = decoder.next_log_probs(document, sequence).tolist()
            left = [label for label in labels if label not in sequence]
            if len(sequence) < max_labels:
                grown += [((*sequence, each), score + log_probs[each], False) for each in left]
            if not (must_use_all and left):
                grown.append((sequence, score + log_probs[-1], True))
        beams = sorted(grown, key=lambda beam: -beam[1])[:beam_width]
    return [(sequence, score) for sequence, score, _ in beams]


def assert_same_sequences(found, expected):
    assert [sequence for sequence, _ in found] == [sequence for sequence, _ in expected]
    assert [p for _, p in found] == pytest.approx([p for _, p in expected], abs=1e-4)


@EVERY_DECODER
def test_a_beam_as_wide_as_the_space_ranks_every_sequence(decoder):
    decoder, encoding = encoded(decoder)
    truth = sequence_log_probs(decoder, encoding)
    sequences = search_sequences(decoder, encoding, EVERYTHING, max_labels=50)
    for document in range(len(TEXTS)):
        expected = sorted(
            ((each, float(p[document])) for each, p in truth.items()), key=lambda pair: -pair[1]
        )
        assert_same_sequences(found_sequences(sequences, document), expected)


@EVERY_DECODER
def test_a_beam_as_wide_as_the_space_finds_every_order_of_a_set(decoder):
    decoder, encoding = encoded(decoder)
    truth = sequence_log_probs(decoder, encoding)
    label_sets = [(0, 1, 2, 3), (1, 3), (2,), ()]
    found = search_orders(decoder, encoding, label_rows(label_sets)[:, None], EVERYTHING)
    for document, labels in enumerate(label_sets):
        orders = dict(found_sequences(found, document))
        assert set(orders) == set(permutations(labels))
        for order, log_prob in orders.items():
            assert log_prob == pytest.approx(float(truth[order][document]), abs=1e-4)


sets_of_five = st.sets(st.integers(0, 4))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 5),
    beam_width=st.integers(1, 30),
    groups=st.lists(st.lists(sets_of_five, min_size=2, max_size=2), min_size=1, max_size=3),
    must_use_all=st.booleans(),
    max_labels=st.integers(0, 6),
)
def test_any_beam_finds_what_the_plain_algorithm_finds(
    seed, beam_width, groups, must_use_all, max_labels
):
    """Each document has two searches, over labels of its own."""
    max_labels = 5 if must_use_all else max_labels
    decoder = TableDecoder(5, n_documents=len(groups), seed=seed)
    choices = torch.stack([label_rows(group, width=5) for group in groups])
    encoding = documents(len(groups))
    found = beam_search(decoder, encoding, choices, beam_width, must_use_all, max_labels)
    for document, group in enumerate(groups):
        for search, labels in enumerate(group):
            assert_same_sequences(
                found_sequences(found, document, search),
                plain_beam_search(
                    decoder, document, sorted(labels), beam_width, must_use_all, max_labels
                ),
            )


def test_restricting_a_search_never_renormalises():
    decoder = TableDecoder(4)
    truth = sequence_log_probs(decoder, documents())
    choices = label_rows([(1, 3)])[:, None]
    found = beam_search(decoder, documents(), choices, EVERYTHING, must_use_all=False)
    sequences = dict(found_sequences(found, 0))
    assert set(sequences) == {(), (1,), (3,), (1, 3), (3, 1)}
    for sequence, log_prob in sequences.items():
        assert log_prob == pytest.approx(float(truth[sequence]), abs=1e-4)


def test_no_labels_to_choose_from_leaves_the_empty_sequence():
    decoder = TableDecoder(4, n_documents=2)
    found = search_orders(decoder, documents(2), torch.empty(2, 3, 0, dtype=torch.long), 12)
    assert found.labels.shape == (2, 3, 1, 0)
    for document in range(2):
        stop = decoder.next_log_probs(document, ())[-1]
        torch.testing.assert_close(found.log_probs[document], stop.expand(3, 1))


def test_no_documents_and_no_searches_find_nothing():
    decoder = TableDecoder(4)
    assert search_sequences(decoder, documents(0), 12, 50).labels.shape[:2] == (0, 1)
    nothing = torch.empty(1, 0, 3, dtype=torch.long)
    assert search_orders(decoder, documents(), nothing, 12).labels.shape[:2] == (1, 0)


@EVERY_DECODER
def test_a_search_leaves_no_gradient(decoder):
    decoder, encoding = encoded(decoder)
    assert encoding.memory.requires_grad
    assert not search_sequences(decoder, encoding, 5, 50).log_probs.requires_grad


# What a search costs.


def n_prefixes(decoder):
    """How many prefixes each step computed, for each document."""
    return [len(of_documents[0]) for of_documents in decoder.prefixes]


@pytest.mark.parametrize(
    ("size", "expected"), [(0, [1]), (1, [1, 1]), (2, [1, 2, 2]), (3, [1, 3, 6, 6])]
)
def test_beams_grow_with_the_step_and_never_exceed_the_orders_of_the_set(size, expected):
    decoder = TableDecoder(5)
    search_orders(decoder, documents(), label_rows([range(size)])[:, None], 12)
    assert n_prefixes(decoder) == expected


def test_a_search_ends_when_all_sequences_have_stopped():
    decoder = TableDecoder(5)
    decoder.table[..., -1] = 100.0
    search_sequences(decoder, documents(), 1, max_labels=50)
    assert len(decoder.prefixes) == 1


def test_searches_of_a_document_share_the_prefixes_they_have_in_common():
    decoder = TableDecoder(5)
    label_sets = [(0, 1), (0, 2), (0, 1, 2), ()]
    search_orders(decoder, documents(), label_rows(label_sets)[None], EVERYTHING)
    for n_emitted, (prefixes,) in enumerate(decoder.prefixes):
        wanted = {
            order[:n_emitted]
            for labels in label_sets
            for order in permutations(labels)
            if len(labels) >= n_emitted
        }
        assert len(prefixes) == len(wanted), "no prefix is computed twice"
        assert set(prefixes) == wanted


def test_the_memory_of_the_encoder_is_never_copied():
    decoder, encoding = TableDecoder(5, n_documents=3), documents(3)
    label_sets = label_rows([range(4)] * 3)
    search_orders(decoder, encoding, label_sets[:, None], 12)
    search_sequences(decoder, encoding, 12, max_labels=50)
    most_probable_sets(decoder, encoding, 12, max_labels=50)
    sample_orders(decoder, encoding, label_sets, 12)
    assert len(decoder.encodings) > 1
    for seen in decoder.encodings:
        assert seen.memory.shape == encoding.memory.shape
        assert seen.memory.data_ptr() == encoding.memory.data_ptr()


class LabelsInOrder(PlainDecoder):
    """Each step prefers the next label."""

    def _logits(self, document, sequences, is_used):
        n_emitted = (sequences >= 0).sum(2, keepdim=True)
        outputs = torch.arange(self.n_labels + 1)
        return -(outputs - n_emitted).abs().float().where(outputs < self.n_labels, 2.0)


def test_a_set_of_many_labels_is_found_whole():
    decoder = LabelsInOrder(25)
    found = search_orders(decoder, documents(), torch.arange(25).view(1, 1, 25), 12)
    assert as_tuple(found.labels[0, 0, 0]) == tuple(range(25))
    assert found.log_probs.shape == (1, 1, 12)
    assert factorial(25) > torch.iinfo(torch.long).max, "the orders cannot even be counted"
