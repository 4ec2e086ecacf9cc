"""tf-idf of words and word pairs, computed from token ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.ragged import Ragged
from setrnn.data.text.words import PAD, SPECIAL_TOKENS, UNKNOWN
from setrnn.errors import DataError
from setrnn.systems.candidates import Floats32, Ints
from setrnn.systems.system import Arrays

MIN_PAIR_COUNT = 4
MAX_PAIR_DOCUMENTS = 100_000  # pairs are chosen on an even sample of larger corpora
# Tokens that say nothing about the topic of a document; NUM does.
_LEFT_OUT = [SPECIAL_TOKENS.index(PAD), SPECIAL_TOKENS.index(UNKNOWN)]


@dataclass(frozen=True)
class Tfidf:
    """Turns rows of token ids into tf-idf vectors of length 1, with 1 + log(tf).

    The columns are the tokens, then the frequent pairs of neighbouring tokens.
    """

    idf: Floats32
    pairs: Ints  # first id * number of tokens + second id, ascending

    def __post_init__(self) -> None:
        """Raise ValueError if the arrays do not fit."""
        idf, pairs = self.idf, self.pairs
        is_sound = idf.ndim == pairs.ndim == 1 and idf.dtype.kind == "f" and pairs.dtype.kind == "i"
        if not is_sound or len(pairs) > len(idf) or (np.diff(pairs) <= 0).any():
            raise ValueError(f"idf {idf.shape} and pairs {pairs.shape} do not fit")

    @property
    def n_tokens(self) -> int:
        """The number of tokens; the other features are pairs."""
        return len(self.idf) - len(self.pairs)

    @classmethod
    def fit(
        cls, tokens: Ragged, n_tokens: int, max_pairs: int = 0
    ) -> tuple[Tfidf, scipy.sparse.csr_matrix]:
        """Learn the pairs and document frequencies; also return the vectors of the documents."""
        from sklearn.feature_extraction.text import TfidfTransformer  # slow, and needed only here

        if not len(tokens):
            raise DataError("There are no documents to train on.")
        pairs = find_frequent_pairs(tokens, n_tokens, max_pairs)
        counts = _count_all(tokens, n_tokens, pairs)
        idf = TfidfTransformer().fit(counts).idf_.astype(np.float32)
        return cls(idf, pairs), _weigh(counts, idf)

    def transform(self, tokens: Ragged) -> scipy.sparse.csr_matrix:
        """Return documents x features."""
        return _weigh(_count_all(tokens, self.n_tokens, self.pairs), self.idf)

    def spread(self, tokens: Ragged) -> scipy.sparse.csr_matrix:
        """Divide the vector of one document among its tokens: (T, d), whose sum is the vector.

        Each occurrence of a word has the same part, and each of the two words of a pair.
        """
        ids = np.asarray(tokens[0], dtype=np.int64)
        places, columns, shares = [np.arange(len(ids))], [ids], [np.ones(len(ids))]
        if len(self.pairs) and len(ids):
            keys = ids[:-1] * self.n_tokens + ids[1:]
            found = np.minimum(np.searchsorted(self.pairs, keys), len(self.pairs) - 1)
            (first,) = np.nonzero(self.pairs[found] == keys)
            for place in (first, first + 1):
                places.append(place)
                columns.append(self.n_tokens + found[first])
                shares.append(np.full(len(first), 0.5))
        where = (np.concatenate(places), np.concatenate(columns))
        counts = scipy.sparse.csr_matrix(
            (np.concatenate(shares), where), shape=(len(ids), len(self.idf))
        )
        total = np.maximum(np.asarray(counts.sum(0)), 0.5)
        return scipy.sparse.csr_matrix(counts.multiply(self.transform(tokens).toarray() / total))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the learned arrays by name."""
        return {"idf": self.idf, "pairs": self.pairs}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Tfidf:
        """Build from the learned arrays."""
        return cls(np.asarray(arrays["idf"]), np.asarray(arrays["pairs"]))


def find_frequent_pairs(tokens: Ragged, n_tokens: int, max_pairs: int) -> Ints:
    """Return the most frequent pairs of neighbouring tokens, as ascending keys."""
    if max_pairs == 0:
        return np.empty(0, dtype=np.int64)
    stride = -(-len(tokens) // MAX_PAIR_DOCUMENTS)
    _, keys = find_pairs(tokens, n_tokens, stride)
    found, counts = np.unique(keys, return_counts=True)
    found, counts = found[counts >= MIN_PAIR_COUNT], counts[counts >= MIN_PAIR_COUNT]
    most = np.argsort(-counts, kind="stable")[:max_pairs]
    return np.sort(found[most])


def find_pairs(tokens: Ragged, n_tokens: int, stride: int = 1) -> tuple[Ints, Ints]:
    """Return the document and the key of each pair of neighbours, without special tokens."""
    values = np.asarray(tokens.values, dtype=np.int64)
    documents = tokens.row_numbers
    is_word = values >= len(SPECIAL_TOKENS)
    is_pair = (documents[1:] == documents[:-1]) & is_word[1:] & is_word[:-1]
    is_pair &= documents[1:] % stride == 0
    keys = values[:-1][is_pair] * n_tokens + values[1:][is_pair]
    return documents[1:][is_pair], keys


def _count_all(tokens: Ragged, n_tokens: int, pairs: Ints) -> scipy.sparse.csr_matrix:
    words = count_tokens(tokens, n_tokens)
    if not len(pairs):
        return words
    documents, keys = find_pairs(tokens, n_tokens)
    place = np.searchsorted(pairs, keys)
    is_known = pairs[np.minimum(place, len(pairs) - 1)] == keys
    ones = np.ones(int(is_known.sum()), dtype=np.float32)
    found = scipy.sparse.csr_matrix(  # repeats are summed
        (ones, (documents[is_known], place[is_known])), shape=(len(tokens), len(pairs))
    )
    return scipy.sparse.csr_matrix(scipy.sparse.hstack([words, found], "csr"))


def count_tokens(tokens: Ragged, n_tokens: int) -> scipy.sparse.csr_matrix:
    """Count the tokens of each document."""
    values = np.ones(len(tokens.values), dtype=np.float32)
    # A copy, because it is sorted and merged in place.
    indices = np.array(tokens.values, dtype=np.int32)
    offsets = np.array(tokens.offsets)
    matrix = scipy.sparse.csr_matrix((values, indices, offsets), shape=(len(tokens), n_tokens))
    matrix.sum_duplicates()
    matrix.data[np.isin(matrix.indices, _LEFT_OUT)] = 0
    matrix.eliminate_zeros()
    return matrix


def indicator(rows: Ragged, n_columns: int) -> scipy.sparse.csr_matrix:
    """Return rows of ids as a matrix of 0 and 1, without ids past the last column."""
    rows = rows.keep(np.asarray(rows.values) < n_columns)  # a copy
    values = np.ones(len(rows.values), dtype=np.float32)
    return scipy.sparse.csr_matrix(
        (values, rows.values, rows.offsets), shape=(len(rows), n_columns)
    )


def _weigh(counts: scipy.sparse.csr_matrix, idf: Floats32) -> scipy.sparse.csr_matrix:
    """Return (1 + log(tf)) idf, in rows of length 1.

    These are the bits of scikit-learn's TfidfTransformer(sublinear_tf=True), whose import takes
    longer than tagging a text.
    """
    values = (np.log(counts.data) + 1) * idf[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    length = np.sqrt(np.bincount(row, values * values, counts.shape[0]))
    values = (values / length[row]).astype(np.float32)
    return scipy.sparse.csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape)
