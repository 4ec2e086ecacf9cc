"""Measures of predicted label sets.

All measures are counted on two indicator matrices: documents x labels, of zeros and ones.
0/0 is 0 for a label (a label that is never right scores nothing) and 1 for a document (nothing to
find, nothing found). The micro average pools all documents, so it follows the rule for documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its parts are loaded on first use: scipy.sparse takes .1 s

from setrnn.errors import ConfigError, DataError, nearest_name

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    Sparse: TypeAlias = scipy.sparse.csr_array[Any, tuple[int, int]]
    Indicator: TypeAlias = Sparse | csr_matrix[Any] | NDArray[Any]
    Counts: TypeAlias = NDArray[np.int64]
    Values: TypeAlias = NDArray[np.float64]

# The measures, in the order in which they are listed everywhere, and their names for people.
MEASURES = {
    "instance_f1": "instance-F1",
    "label_f1": "label-F1",
    "micro_f1": "micro-F1",
    "subset_accuracy": "subset accuracy",
    "hamming_loss": "hamming loss",
}
LOWER_IS_BETTER = frozenset({"hamming_loss"})


def find_measure(name: str) -> str:
    """Return the key of a measure by its name, which may be written with hyphens.

    Example:
        >>> find_measure("instance-f1"), find_measure("hamming_loss")
        ('instance_f1', 'hamming_loss')
    """
    key = name.replace("-", "_")
    if key not in MEASURES:
        near = nearest_name(name, [each.replace("_", "-") for each in MEASURES])
        raise ConfigError(f"There is no measure '{name}'. {near}")
    return key


def write_measure(value: float, measure: str) -> str:
    """Write a value of a measure with as many digits as say something."""
    return f"{value:.{4 if measure in LOWER_IS_BETTER else 3}f}"


def is_better(value: float, other: float, measure: str) -> bool:
    """Return whether a value of a measure is better than another."""
    return value < other if measure in LOWER_IS_BETTER else value > other


@dataclass(frozen=True)
class Scores:
    """The measures of the predictions for a set of documents.

    `label_f1` is the mean over all labels of the matrices, including those that neither occur nor
    are predicted. `n_unseen_labels` of them are not labels of the model.
    """

    n_documents: int
    n_labels: int
    label_f1: float
    instance_f1: float
    micro_f1: float
    micro_precision: float
    micro_recall: float
    hamming_loss: float
    subset_accuracy: float
    mean_set_size: float
    mean_predicted_set_size: float
    n_unseen_labels: int = 0
    n_unseen_label_occurrences: int = 0
    n_incomplete: int = 0  # documents with labels that are not known

    def as_dict(self) -> dict[str, float | int]:
        """Return the measures by name, as plain JSON values."""
        named = asdict(self)
        if not self.n_incomplete:
            del named["n_incomplete"]
        return named

    def describe(self) -> str:
        """Describe the measures of labels and of whole sets in a sentence, per hundred.

        Example:
            >>> scores = evaluate_label_sets([("a",), ("b", "c")], [("a",), ("b", "d")], "abcd")
            >>> scores.describe().partition("; ")[0]
            'Of 100 proposed labels 67 are right'
        """
        return (
            f"Of 100 proposed labels {100 * self.micro_precision:.0f} are right; of 100 true "
            f"labels {100 * self.micro_recall:.0f} are found; {100 * self.subset_accuracy:.0f} of "
            "100 documents are exactly right."
        )


@dataclass(frozen=True)
class Overlap:
    """Sizes of the true sets, the predicted sets and their overlaps, per label or document."""

    n_true: Counts
    n_predicted: Counts
    n_correct: Counts

    def f1(self, empty: float) -> Values:
        """Return F1, with a value for what is neither true nor predicted."""
        return _ratio(2 * self.n_correct, self.n_true + self.n_predicted, empty)

    def total(self) -> Overlap:
        """Return the sums over all labels or documents."""
        return Overlap(self.n_true.sum(), self.n_predicted.sum(), self.n_correct.sum())


def evaluate_sets(
    truth: Indicator, predicted: Indicator, unknown: Indicator | None = None
) -> Scores:
    """Compute the measures of predicted label sets; all matrices are documents x labels.

    Labels that are not known count neither for nor against: they are taken out of the predicted
    sets, hamming loss is the share of the known labels that are wrong, and a prediction is exact
    if it agrees with all that is known. Documents without known labels are left out.

    Example:
        >>> scores = evaluate_sets(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [1, 0]]))
        >>> round(scores.instance_f1, 3), scores.label_f1, scores.subset_accuracy
        (0.833, 0.5, 0.5)
    """
    true_sets, predicted_sets = matching_pair(truth, predicted)
    n_known, n_incomplete = true_sets.shape[0] * true_sets.shape[1], 0
    if unknown is not None:
        unknown_sets = matching_pair(truth, unknown)[1]
        n_unknown = np.diff(unknown_sets.indptr)
        is_measured = n_unknown < unknown_sets.shape[1]
        if not is_measured.any():
            raise DataError("No label of any document is known: there is nothing to measure on.")
        n_incomplete = int(np.count_nonzero(n_unknown))
        n_known -= int(n_unknown.sum())
        predicted_sets = hide_labels(predicted_sets, unknown_sets)[is_measured]
        true_sets = hide_labels(true_sets, unknown_sets)[is_measured]
    n_documents, n_labels = true_sets.shape
    by_document = _overlap_by_document(true_sets, predicted_sets)
    pooled = by_document.total()
    # A precision or recall is also 0/0 if only one side is empty: then it is 0.
    all_empty = float(pooled.n_true + pooled.n_predicted == 0)
    n_wrong = pooled.n_true + pooled.n_predicted - 2 * pooled.n_correct
    is_exact = (by_document.n_true == by_document.n_correct) & (
        by_document.n_predicted == by_document.n_correct
    )
    return Scores(
        n_documents=n_documents,
        n_labels=n_labels,
        label_f1=float(overlap_by_label(true_sets, predicted_sets).f1(empty=0.0).mean()),
        instance_f1=float(by_document.f1(empty=1.0).mean()),
        micro_f1=float(pooled.f1(empty=1.0)),
        micro_precision=float(_ratio(pooled.n_correct, pooled.n_predicted, all_empty)),
        micro_recall=float(_ratio(pooled.n_correct, pooled.n_true, all_empty)),
        hamming_loss=int(n_wrong) / n_known,
        subset_accuracy=float(is_exact.mean()),
        mean_set_size=float(by_document.n_true.mean()),
        mean_predicted_set_size=float(by_document.n_predicted.mean()),
        n_incomplete=n_incomplete,
    )


def evaluate_label_sets(
    true_sets: Iterable[Collection[str]],
    predicted_sets: Iterable[Collection[str]],
    labels: Sequence[str],
    unknown: Indicator | None = None,
) -> Scores:
    """Compute the measures of predicted sets of label names; `labels` are those of the model.

    A true label that the model does not have counts as missed: it is one more label with F1 0.
    The scores contain the number of such labels. `unknown` marks labels of the model that are not
    known, documents x labels: see `evaluate_sets`.

    Example:
        >>> scores = evaluate_label_sets([["a", "b"]], [["a"]], labels=["a", "b"])
        >>> round(scores.instance_f1, 3), scores.micro_precision, scores.micro_recall
        (0.667, 1.0, 0.5)
    """
    truth, predicted = indicator_matrices(true_sets, predicted_sets, labels)
    if unknown is not None:
        unknown = _mark_unseen(unknown, truth)
    return replace(
        evaluate_sets(truth, predicted, unknown),
        n_unseen_labels=truth.shape[1] - len(labels),
        n_unseen_label_occurrences=int(np.count_nonzero(truth.indices >= len(labels))),
    )


def f1_by_label(truth: Indicator, predicted: Indicator) -> Values:
    """Return the F1 of each label. Its mean is label-F1."""
    return overlap_by_label(*matching_pair(truth, predicted)).f1(empty=0.0)


def document_f1(truth: Indicator, predicted: Indicator) -> Values:
    """Return the F1 of each document. Its mean is instance-F1."""
    return _overlap_by_document(*matching_pair(truth, predicted)).f1(empty=1.0)


def _overlap_by_document(truth: Sparse, predicted: Sparse) -> Overlap:
    matrices = (truth, predicted, truth.multiply(predicted).tocsr())
    return Overlap(*(np.diff(matrix.indptr).astype(np.int64) for matrix in matrices))


def overlap_by_label(truth: Sparse, predicted: Sparse) -> Overlap:
    """Count the true, the predicted and the rightly predicted documents of each label."""
    matrices = (truth, predicted, truth.multiply(predicted).tocsr())
    return Overlap(*(np.bincount(m.indices, minlength=m.shape[1]) for m in matrices))


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any], empty: float) -> Values:
    """Divide; the result is `empty` where the denominator is 0."""
    is_empty = denominator == 0
    return np.where(is_empty, empty, numerator / np.where(is_empty, 1, denominator))


def indicator_matrices(
    true_sets: Iterable[Collection[str]],
    predicted_sets: Iterable[Collection[str]],
    labels: Sequence[str],
) -> tuple[Sparse, Sparse]:
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
    truth = indicator_matrix(_columns_of_sets(true_sets, column_of), len(column_of))
    return truth, predicted


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
    found = scipy.sparse.csr_array(sets).astype(np.int8)
    return as_indicator(found - found.multiply(unknown), "sets")


def _mark_unseen(unknown: Indicator, truth: Sparse) -> Sparse:
    """Return marks for the labels of the model and the unseen ones of `truth`.

    If no label of the model is known, neither are the unseen ones that are not given.
    """
    marks = scipy.sparse.csr_array(unknown).astype(bool)
    n_labels = marks.shape[1]
    is_nothing = np.asarray(marks.sum(axis=1)).ravel() == n_labels
    unseen = is_nothing[:, None] & ~truth[:, n_labels:].toarray()
    return scipy.sparse.csr_array(scipy.sparse.hstack([marks, scipy.sparse.csr_array(unseen)]))
