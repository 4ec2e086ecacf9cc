"""Batches hold what the split holds, padded, in buckets of documents with similar lengths."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setrnn.data.batches import (
    FEW_WORDS,
    TargetSets,
    make_batch,
    prediction_batches,
    training_batches,
)
from setrnn.data.ragged import Ragged

token_rows = st.lists(st.lists(st.integers(1, 99), max_size=6), min_size=1, max_size=8)
some_lengths = st.lists(st.integers(0, 9), max_size=60)


@st.composite
def rows_and_choice(draw):
    """Rows, and some of their numbers in any order, with repeats."""
    rows = draw(token_rows)
    chosen = draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    return rows, np.array(chosen, dtype=np.int64)


@given(rows_and_choice(), st.data())
def test_a_batch_holds_the_documents_in_the_order_asked(case, data):
    rows, chosen = case
    label_sets = [data.draw(st.sets(st.integers(0, 9), max_size=4)) for _ in rows]
    labels = Ragged.from_lists([list(each)[::-1] for each in label_sets])
    batch = make_batch(Ragged.from_lists(rows), labels, chosen)
    assert len(batch) == len(chosen)
    assert batch.rows.tolist() == chosen.tolist()
    assert batch.tokens.dtype == batch.labels.dtype == torch.int64
    for row, tokens, length, found in zip(
        batch.rows,
        batch.tokens.tolist(),
        batch.lengths.tolist(),
        batch.labels.tolist(),
        strict=True,
    ):
        assert length == max(len(rows[row]), 1)
        assert tokens == rows[row] + [0] * (batch.tokens.shape[1] - len(rows[row]))
        assert found == [*sorted(label_sets[row]), *[-1] * (len(found) - len(label_sets[row]))]
    assert batch.set_sizes.tolist() == [len(label_sets[row]) for row in chosen]
    if len(batch):
        assert batch.tokens.shape[1] == int(batch.lengths.max()), "no more padding than needed"
        assert batch.labels.shape[1] == max(len(label_sets[row]) for row in chosen)


def test_a_batch_without_labels_has_empty_sets():
    batch = make_batch(Ragged.from_lists([[1, 2], []]), None, np.arange(2))
    assert batch.labels.shape == (2, 0)
    assert batch.tokens.tolist() == [[1, 2], [0, 0]]
    assert batch.lengths.tolist() == [2, 1], "an empty document has a word of padding"


@given(some_lengths, st.integers(1, 9), st.integers(0, 99))
def test_every_document_is_in_one_training_batch(lengths, batch_size, seed):
    lengths = np.array(lengths, dtype=np.int64)
    sizes = lengths % 5
    batches = training_batches(lengths, sizes, batch_size, np.random.default_rng(seed))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    sizes = sorted(len(batch) for batch in batches)
    assert all(size == batch_size for size in sizes[1:]), "at most one is not full"
    assert all(0 < size <= batch_size for size in sizes)


def test_a_training_batch_holds_documents_of_alike_length():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 500, 16 * 300)
    batches = training_batches(lengths, np.ones_like(lengths), 16, random)
    spread = np.mean([np.ptp(lengths[batch]) for batch in batches])
    assert spread < 500 / 20, "a random batch spreads over nearly all lengths"


def test_documents_of_one_length_are_mixed_whatever_their_labels():
    """A batch of one set size would pull STOP one way at a time."""
    set_sizes = np.repeat([0, 1, 2, 3, 4], 64)
    batches = training_batches(np.ones(320, int), set_sizes, 16, np.random.default_rng(0))
    assert all(len({*set_sizes[batch]}) >= 3 for batch in batches)


def test_the_few_largest_sets_share_a_fourth_of_the_batches():
    """What they cost is then not paid in every batch; they never fill a batch alone."""
    random = np.random.default_rng(0)
    set_sizes = random.choice([1, 2, 3, 9, 15], 4_096, p=[0.5, 0.3, 0.13, 0.05, 0.02])
    batches = training_batches(random.integers(1, 90, 4_096), set_sizes, 32, random)
    n_large = [int((set_sizes[batch] > 3).sum()) for batch in batches]
    assert sum(each > 0 for each in n_large) <= len(batches) // 4 + 2
    assert max(n_large) <= 24
    assert sum(n_large) == (set_sizes > 3).sum()


@given(some_lengths, st.integers(1, 9), st.integers(1, 40))
def test_prediction_batches_hold_every_document_and_fit_both_limits(
    lengths, max_documents, max_words
):
    lengths = np.array(lengths, dtype=np.int64)
    batches = prediction_batches(lengths, max_documents, max_words)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert 0 < len(batch) <= max_documents
        assert len(batch) == 1 or len(batch) * max(lengths[batch].max(), 1) <= max_words
    in_order = [int(lengths[row]) for batch in batches for row in batch]
    assert in_order == sorted(in_order, reverse=True), "the longest come first"


@pytest.mark.parametrize("seed", range(5))
def test_no_document_waits_for_one_that_is_much_longer(seed):
    random = np.random.default_rng(seed)
    lengths = np.append(random.integers(1, 60, 200), [5_000, 700, 0])
    batches = prediction_batches(lengths, 64, 2**18, least_share=0.5)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert batches[0].tolist() == [200]
    for rows in batches:
        longest = lengths[rows].max()
        assert (2 * lengths[rows] >= longest).all() or longest <= FEW_WORDS
    # Documents of few words share batches, whatever their lengths.
    assert len(batches) <= 200 / 64 + 2 + 4


def test_parts_of_a_batch_keep_all_that_is_known_of_their_documents():
    """Parts without the weights of unknown labels were trained as if these were absent."""
    lists = Ragged.from_lists([[4], [7], [8]])
    plain = make_batch(lists, lists, np.arange(3))
    whole = replace(plain, log_weights=torch.rand(3, 9))
    parts = [whole.part(0, 2), whole.part(2, 3)]
    for name in ("tokens", "lengths", "labels", "set_sizes", "log_weights"):
        joined = torch.cat([getattr(part, name) for part in parts])
        assert torch.equal(joined, getattr(whole, name)), name


def test_parts_of_a_batch_keep_the_sets_of_their_documents():
    tokens = Ragged.from_lists([[4, 5, 6], [7], [8, 9]])
    plain = make_batch(tokens, Ragged.from_lists([[1], [], [0, 2]]), np.array([2, 0, 1]))
    assert plain.part(1, 3).rows.tolist() == [0, 1]
    assert plain.part(1, 3).labels.tolist() == [[1, -1], [-1, -1]]
    assert plain.part(0, 1).tokens.tolist() == [[8, 9]]
    targets = TargetSets(
        np.array([[[0, -1], [1, 2]], [[2, -1], [-1, -1]], [[3, -1], [-1, -1]]], dtype=np.int32),
        np.array([[0.7, 0.3], [0.9, 0.1], [1.0, 0.0]], dtype=np.float32),
    )
    batch = targets.of(plain)
    part = batch.part(1, 3)
    assert part.documents.tolist() == [0, 0, 1, 1]
    assert part.labels.tolist() == [[0, -1], [1, 2], [2, -1], [-1, -1]]
    assert part.set_sizes.tolist() == [1, 2, 1, 0]
    assert part.weights.tolist() == pytest.approx([0.7, 0.3, 0.9, 0.1])
