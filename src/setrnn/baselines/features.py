"""tf-idf from token ids: no text is read twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from setrnn.data.ragged import Ragged
from setrnn.data.tokenizing import PAD, SPECIAL_TOKENS, UNKNOWN
from setrnn.errors import DataError

# What says nothing of a document's topic; NUM does.
_LEFT_OUT = [SPECIAL_TOKENS.index(PAD), SPECIAL_TOKENS.index(UNKNOWN)]


@dataclass(frozen=True)
class Tfidf:
    """Turns rows of token ids into tf-idf vectors of length 1, with 1 + log(tf)."""

    idf: npt.NDArray[np.float32]

    @classmethod
    def fit(cls, tokens: Ragged, n_tokens: int) -> tuple[Tfidf, sp.csr_matrix]:
        """Learn the document frequencies; return the vectors of these documents too."""
        if not len(tokens):
            raise DataError("There are no documents to train on.")
        counts = count_matrix(tokens, n_tokens)
        transformer = _transformer().fit(counts)
        return cls(transformer.idf_.astype(np.float32)), _vectors(transformer, counts)

    def transform(self, tokens: Ragged) -> sp.csr_matrix:
        """Return documents x tokens."""
        transformer = _transformer()
        transformer.idf_ = self.idf
        return _vectors(transformer, count_matrix(tokens, len(self.idf)))


def count_matrix(tokens: Ragged, n_tokens: int) -> sp.csr_matrix:
    """Count the tokens of each document."""
    values = np.ones(len(tokens.values), dtype=np.float32)
    # A copy: what follows sorts and merges in place.
    indices = np.array(tokens.values, dtype=np.int32)
    offsets = np.array(tokens.offsets)
    matrix = sp.csr_matrix((values, indices, offsets), shape=(len(tokens), n_tokens))
    matrix.sum_duplicates()
    matrix.data[np.isin(matrix.indices, _LEFT_OUT)] = 0
    matrix.eliminate_zeros()
    return matrix


def indicator(rows: Ragged, n_columns: int) -> sp.csr_matrix:
    """Return rows of ids as a matrix of 0 and 1; ids past the last column are left out."""
    rows = rows.keep(np.asarray(rows.values) < n_columns)  # a copy
    values = np.ones(len(rows.values), dtype=np.float32)
    return sp.csr_matrix((values, rows.values, rows.offsets), shape=(len(rows), n_columns))


def _transformer() -> Any:  # noqa: ANN401 (scikit-learn has no types)
    return TfidfTransformer(sublinear_tf=True)


def _vectors(transformer: Any, counts: sp.csr_matrix) -> sp.csr_matrix:  # noqa: ANN401
    if not counts.shape[0]:  # scikit-learn refuses them
        return counts
    return sp.csr_matrix(transformer.transform(counts), dtype=np.float32)
