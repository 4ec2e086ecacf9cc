import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    hamming_loss,
    precision_score,
)

from setrnn.errors import DataError
from setrnn.metrics import (
    MEASURES,
    evaluate_label_sets,
    evaluate_sets,
    f1_by_label,
)


@st.composite
def pairs(draw):
    """Truth and prediction, dense; sparse enough that empty rows and columns are common."""
    shape = draw(st.tuples(st.integers(1, 8), st.integers(2, 6)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.1, 0.4, 0.9]))
    return generator.random((2, *shape)) < density


@given(pairs())
def test_measures_equal_those_of_scikit_learn(pair):
    truth, predicted = pair.astype(int)
    scores = evaluate_sets(csr_array(truth), csr_array(predicted))
    by_label = f1_score(truth, predicted, average=None, zero_division=0)
    np.testing.assert_allclose(f1_by_label(truth, predicted), by_label)
    assert scores.label_f1 == pytest.approx(
        f1_score(truth, predicted, average="macro", zero_division=0)
    )
    assert scores.instance_f1 == pytest.approx(
        f1_score(truth, predicted, average="samples", zero_division=1)
    )
    assert scores.micro_f1 == pytest.approx(
        f1_score(truth, predicted, average="micro", zero_division=1)
    )
    assert scores.hamming_loss == pytest.approx(hamming_loss(truth, predicted))
    assert scores.micro_precision == pytest.approx(
        precision_score(truth, predicted, average="micro", zero_division=float(not truth.any()))
    )
    assert scores.subset_accuracy == pytest.approx(accuracy_score(truth, predicted))
    assert scores.mean_set_size == pytest.approx(truth.sum(axis=1).mean())
    assert scores.mean_predicted_set_size == pytest.approx(predicted.sum(axis=1).mean())


def test_nothing_to_find_and_nothing_found_is_one_for_documents_and_zero_for_labels():
    scores = evaluate_sets(np.zeros((2, 3)), np.zeros((2, 3)))
    assert scores.instance_f1 == scores.micro_f1 == 1
    assert scores.micro_precision == scores.micro_recall == 1
    assert scores.label_f1 == 0


def test_kind_of_matrix_and_stored_zeros_change_nothing():
    truth, predicted = np.array([[1, 0], [1, 1]]), np.array([[1, 1], [0, 1]])
    with_stored_zero = csr_array(
        (np.array([1, 0, 1, 1]), np.array([0, 1, 1, 0]), np.array([0, 2, 4])), shape=(2, 2)
    )
    expected = evaluate_sets(truth, predicted)
    assert evaluate_sets(with_stored_zero, csr_matrix(predicted)) == expected
    assert evaluate_sets(truth.astype(bool), predicted.astype(float)) == expected
    assert with_stored_zero.nnz == 4


@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), "same documents and labels"),
        (np.ones((2, 3)), np.full((2, 3), 0.3), "0 and 1.* 0.3"),
        (np.ones((0, 3)), np.ones((0, 3)), "0 documents"),
        (np.ones(3), np.ones(3), "documents x labels"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(truth, predicted, message):
    with pytest.raises(DataError, match=message):
        evaluate_sets(truth, predicted)


def test_unseen_labels_count_as_missed_and_are_reported():
    scores = evaluate_label_sets(
        [{"a", "new"}, {"b", "new"}, {"newer"}], [["a"], ["b"], []], labels=["a", "b"]
    )
    assert scores.n_labels == 4
    assert scores.n_unseen_labels == 2
    assert scores.n_unseen_label_occurrences == 3
    assert scores.label_f1 == pytest.approx(2 / 4)
    assert scores.micro_recall == pytest.approx(2 / 5)
    assert scores.micro_precision == 1


@pytest.mark.parametrize(
    ("true_sets", "predicted_sets", "labels", "message"),
    [
        ([["a"]], [["x"]], ["a"], "document 1: .*'x'"),
        ([["a"]], [["a"], ["a"]], ["a"], "1 true .* 2 predicted"),
        (["a"], [["a"]], ["a"], "set of labels, got 'a'"),
        ([["a"]], [["a"]], ["a", "a"], "distinct"),
    ],
)
def test_label_sets_that_do_not_fit_are_refused(true_sets, predicted_sets, labels, message):
    with pytest.raises(DataError, match=message):
        evaluate_label_sets(true_sets, predicted_sets, labels)


# Labels that are not known, against plain loops.
NAMES = ("a", "b", "c", "d")


def made(seed=0, n=30, n_labels=4):
    random = np.random.default_rng(seed)
    truth, predicted = (random.random((n, n_labels)) < 0.4 for _ in range(2))
    unknown = random.random((n, n_labels)) < 0.4
    unknown[0], unknown[1] = True, False
    return truth & ~unknown, predicted, unknown


def f1(n_right, n_true, n_predicted, empty):
    return 2 * n_right / (n_true + n_predicted) if n_true + n_predicted else empty


def counts(pairs):
    pairs = list(pairs)
    return sum(t and p for t, p in pairs), sum(t for t, _ in pairs), sum(p for _, p in pairs)


@pytest.mark.parametrize("seed", range(3))
def test_only_known_pairs_count(seed):
    truth, predicted, unknown = made(seed)
    found = evaluate_sets(truth, predicted, unknown)
    n, n_labels = truth.shape
    rows = [
        [(truth[i, j], predicted[i, j]) for j in range(n_labels) if not unknown[i, j]]
        for i in range(n)
    ]
    columns = [
        [(truth[i, j], predicted[i, j]) for i in range(n) if not unknown[i, j]]
        for j in range(n_labels)
    ]
    measured = [row for row in rows if row]
    cells = [pair for row in rows for pair in row]
    assert found.n_documents == len(measured)
    assert found.n_incomplete == int(unknown.any(1).sum())
    expected = {
        "instance_f1": np.mean([f1(*counts(row), 1) for row in measured]),
        "label_f1": np.mean([f1(*counts(column), 0) for column in columns]),
        "micro_f1": f1(*counts(cells), 1),
        "subset_accuracy": np.mean([all(t == p for t, p in row) for row in measured]),
        "hamming_loss": np.mean([t != p for t, p in cells]),
    }
    assert {name: found.as_dict()[name] for name in MEASURES} == pytest.approx(expected)


def test_what_is_predicted_of_unknown_labels_changes_nothing():
    truth, predicted, unknown = made()
    assert evaluate_sets(truth, predicted | unknown, unknown) == evaluate_sets(
        truth, predicted & ~unknown, unknown
    )


def test_known_labels_are_measured_as_always():
    truth, predicted, _ = made()
    nothing = np.zeros_like(truth)
    assert evaluate_sets(truth, predicted, nothing) == evaluate_sets(truth, predicted)
    assert "n_incomplete" not in evaluate_sets(truth, predicted).as_dict()


def test_documents_without_known_labels_cannot_be_measured():
    truth, predicted, unknown = made()
    with pytest.raises(DataError, match="nothing to measure"):
        evaluate_sets(truth, predicted, np.ones_like(unknown))


def test_a_document_of_which_nothing_is_known_is_left_out_beside_unseen_labels():
    unknown = np.array([[True] * 4, [False] * 4])
    found = evaluate_label_sets([(), ("a", "new")], [("b",), ("a",)], NAMES, unknown)
    assert (found.n_documents, found.n_unseen_labels) == (1, 1)
    assert found.instance_f1 == pytest.approx(2 / 3)
