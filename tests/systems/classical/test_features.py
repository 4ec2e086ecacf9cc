from collections import Counter
from itertools import chain, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfTransformer

from setrnn.data.ragged import Ragged
from setrnn.data.text.words import NUMBER, PAD, SPECIAL_TOKENS, UNKNOWN
from setrnn.systems.classical.features import (
    MIN_PAIR_COUNT,
    Tfidf,
    _count_all,
    indicator,
)

N_TOKENS = 12
PAD_ID, UNKNOWN_ID, NUMBER_ID = (SPECIAL_TOKENS.index(each) for each in (PAD, UNKNOWN, NUMBER))


def test_unknown_words_and_padding_leave_no_trace_but_numbers_do():
    tfidf, _ = Tfidf.fit(Ragged.from_lists([[3, 4], [4, 5]]), N_TOKENS)
    with_it, without = tfidf.transform(
        Ragged.from_lists([[PAD_ID, 3, UNKNOWN_ID, UNKNOWN_ID, 4], [3, 4]])
    ).toarray()
    np.testing.assert_array_equal(with_it, without)
    numbers = tfidf.transform(Ragged.from_lists([[NUMBER_ID]])).toarray()[0]
    assert numbers[NUMBER_ID] == pytest.approx(1)


@given(st.lists(st.sets(st.integers(0, 9)).map(sorted), max_size=6), st.integers(1, 10))
@settings(deadline=None)
def test_the_indicator_has_a_one_for_each_id_below_its_width(rows, n_columns):
    matrix = indicator(Ragged.from_lists(rows), n_columns)
    assert matrix.shape == (len(rows), n_columns)
    assert [np.flatnonzero(row).tolist() for row in matrix.toarray()] == [
        [value for value in row if value < n_columns] for row in rows
    ]
    assert set(matrix.data.tolist()) <= {1.0}


def plain_pairs(rows):
    return [[pair for pair in pairwise(row) if min(pair) > 2] for row in rows]


@given(st.lists(st.lists(st.integers(0, 7), max_size=12), min_size=1, max_size=40))
@settings(deadline=None)
def test_pairs_are_the_frequent_neighbours_and_are_counted(rows):
    tokens, n_tokens, max_pairs = Ragged.from_lists(rows), 8, 5
    tfidf, _ = Tfidf.fit(tokens, n_tokens, max_pairs)
    counts = Counter(chain.from_iterable(plain_pairs(rows)))
    frequent = {pair for pair, count in counts.items() if count >= MIN_PAIR_COUNT}
    chosen = [divmod(int(key), n_tokens) for key in tfidf.pairs]
    assert chosen == sorted(chosen)
    assert set(chosen) <= frequent
    assert len(chosen) == min(max_pairs, len(frequent))
    left_out = [counts[pair] for pair in frequent - set(chosen)]
    assert all(counts[pair] >= max(left_out, default=0) for pair in chosen)

    found = _count_all(tokens, n_tokens, tfidf.pairs).toarray()[:, n_tokens:]
    for row, pairs in zip(found, plain_pairs(rows), strict=True):
        assert row.tolist() == [pairs.count(pair) for pair in chosen]


def test_vectors_are_the_bits_of_scikit_learn():
    """1 + log(tf), times log((1 + n) / (1 + df)) + 1, of length 1."""
    random = np.random.default_rng(0)
    rows = [random.zipf(1.3, size).clip(4, 199).tolist() for size in random.integers(0, 120, 300)]
    tokens = Ragged.from_lists(rows)
    counts = sp.csr_matrix([np.bincount(row, minlength=200) for row in rows], dtype=np.float32)
    theirs = TfidfTransformer(sublinear_tf=True).fit(counts)
    tfidf, ours = Tfidf.fit(tokens, 200)
    for found in (ours, tfidf.transform(tokens)):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.toarray(), theirs.transform(counts).toarray())
