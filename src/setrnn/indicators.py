"""Label sets as indicator matrices: documents x labels, of zeros and ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its parts are loaded on first use: scipy.sparse takes .1 s

from setrnn.errors import DataError

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    Sparse: TypeAlias = scipy.sparse.csr_array[Any, tuple[int, int]]
    Indicator: TypeAlias = Sparse | csr_matrix[Any] | NDArray[Any]


@dataclass(frozen=True)
class Indicators:
    """True and predicted sets as matrices: the labels of the model, then the unseen labels."""

    truth: Sparse
    predicted: Sparse
    labels: tuple[str, ...]
    n_model_labels: int

    @property
    def n_unseen_labels(self) -> int:
        """The number of true labels that are not labels of the model."""
        return len(self.labels) - self.n_model_labels

    @property
    def n_unseen_label_occurrences(self) -> int:
        """The number of occurrences of unseen labels in all documents."""
        return int(np.count_nonzero(self.truth.indices >= self.n_model_labels))


def indicator_matrices(
    true_sets: Iterable[Collection[str]],
    predicted_sets: Iterable[Collection[str]],
    labels: Sequence[str],
) -> Indicators:
    """Turn sets of label names into matrices: the labels of the model, then the unseen labels.

    Unseen labels are in the order of their first occurrence.
    """
    true_sets, predicted_sets = list(true_sets), list(predicted_sets)
    if len(true_sets) != len(predicted_sets):
        raise DataError(
            f"{len(true_sets)} true label sets but {len(predicted_sets)} predicted ones: "
            "give one of each per document."
        )
    column_of = {label: column for column, label in enumerate(labels)}
    if len(column_of) != len(labels):
        raise DataError("The labels of the model must be distinct, but some repeat.")
    predicted = indicator_matrix(_columns_of_sets(predicted_sets, column_of), len(column_of))
    for label in chain.from_iterable(true_sets):
        column_of.setdefault(label, len(column_of))
    predicted.resize((len(predicted_sets), len(column_of)))
    return Indicators(
        truth=indicator_matrix(_columns_of_sets(true_sets, column_of), len(column_of)),
        predicted=predicted,
        labels=tuple(column_of),
        n_model_labels=len(labels),
    )


def indicator_matrix(rows: Sequence[Collection[int]], n_columns: int) -> Sparse:
    """Build a matrix of zeros and ones from the columns of the ones of each row."""
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(starts[-1]))
    ones = np.ones(len(columns), dtype=bool)
    matrix = scipy.sparse.csr_array((ones, columns, starts), shape=(len(rows), n_columns))
    matrix.sort_indices()
    return matrix


def _columns_of_sets(
    label_sets: Sequence[Collection[str]], column_of: dict[str, int]
) -> list[set[int]]:
    rows = []
    for number, labels in enumerate(label_sets, start=1):
        if isinstance(labels, str):
            raise DataError(f"document {number}: expected a set of labels, got {labels!r}.")
        try:
            rows.append({column_of[label] for label in labels})
        except KeyError as error:
            raise DataError(
                f"document {number}: predicted label {error} is not one of the model's labels."
            ) from None
    return rows


def as_indicator(matrix: Indicator, name: str) -> Sparse:
    """Return a copy as a sparse matrix in canonical form; raise DataError unless all are 0 or 1."""
    if matrix.ndim != 2:
        raise DataError(f"{name} must be documents x labels, got {matrix.ndim} dimension(s).")
    if 0 in matrix.shape:
        raise DataError(f"{name} has {matrix.shape[0]} documents and {matrix.shape[1]} labels.")
    indicator = scipy.sparse.csr_array(matrix, copy=True)
    indicator.sum_duplicates()
    indicator.eliminate_zeros()
    is_other = indicator.data != 1
    if is_other.any():
        raise DataError(f"{name} must hold 0 and 1 only, got {indicator.data[is_other][0]}.")
    ones = np.ones(indicator.nnz, dtype=bool)
    return scipy.sparse.csr_array(
        (ones, indicator.indices, indicator.indptr), shape=indicator.shape
    )


def matching_pair(truth: Indicator, predicted: Indicator) -> tuple[Sparse, Sparse]:
    """Return both in canonical form; raise DataError if their shapes differ."""
    if truth.shape != predicted.shape:
        raise DataError(
            f"truth is {truth.shape}, predicted is {predicted.shape}: "
            "both must have the same documents and labels."
        )
    return as_indicator(truth, "truth"), as_indicator(predicted, "predicted")


def hide_labels(sets: Indicator, unknown: Indicator) -> Sparse:
    """Return sets without the labels that are not known."""
    found = scipy.sparse.csr_array(sets)
    kept = found.astype(np.int8) - found.multiply(unknown).astype(np.int8)
    return as_indicator(scipy.sparse.csr_array(kept), "sets")


def mark_unseen(unknown: Indicator, truth: Sparse) -> Sparse:
    """Return marks for the labels of the model and the unseen ones of `truth`.

    If no label of the model is known, neither are the unseen ones that are not given.
    """
    marks = scipy.sparse.csr_array(unknown)
    n_labels, n_unseen = marks.shape[1], truth.shape[1] - marks.shape[1]
    marks = scipy.sparse.csr_array(marks.astype(bool))
    is_nothing = np.asarray(marks.sum(axis=1)).ravel() == n_labels
    unseen = np.repeat(is_nothing[:, None], n_unseen, axis=1) & ~truth[:, n_labels:].toarray()
    return scipy.sparse.csr_array(scipy.sparse.hstack([marks, scipy.sparse.csr_array(unseen)]))
