"""Measures of documents with unknown labels, against plain loops."""

import numpy as np
import pytest

from setrnn.errors import DataError
from setrnn.metrics import MEASURES, evaluate_label_sets, evaluate_sets

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
