import inspect
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

from setrnn.config import ClassicalSettings
from setrnn.model.devices import limited_threads
from setrnn.systems.classical.logistic import fit_logistic

USUAL = ClassicalSettings()
TIGHT = {"max_steps": 3000, "tolerance": 1e-10}
PENALTIES = [(0.5, 0.0), (0.0, 0.3), (0.1, 0.03), (1.0, 1.0), (3.0, 0.1)]
BY_PENALTY = pytest.mark.parametrize(("l1", "l2"), PENALTIES)
KINDS = pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])


def random_problem(n=60, d=8, n_labels=3, is_sparse=False, seed=0):
    """Labels that depend on the features, with noise; no label is constant."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    if is_sparse:
        X = np.abs(X) * (generator.random((n, d)) < 0.3)
    truth = generator.normal(size=(d, n_labels)) * (generator.random((d, n_labels)) < 0.6)
    noise = generator.logistic(size=(n, n_labels))
    Y = (X @ truth + generator.normal(size=n_labels) + noise > 0).astype(np.float32)
    Y[0], Y[1] = 0, 1
    return sp.csr_matrix(X.astype(np.float32)), sp.csr_matrix(Y)


def objective(X, Y, weights, intercepts, l1, l2):
    """What each label minimises, in double precision: (L,)."""
    X, Y = X.toarray().astype(float), Y.toarray().astype(float)
    weights = weights.astype(float)
    logits = X @ weights + intercepts.astype(float)
    loss = (np.logaddexp(0, logits) - Y * logits).sum(0)
    return loss + l1 * np.abs(weights).sum(0) + l2 / 2 * np.square(weights).sum(0)


def sklearn_optimum(X, y, l1, l2):
    """Weights (d,) and intercept of scikit-learn's solution of one label."""
    options = {"C": 1 / (l1 + l2), "tol": 1e-9, "max_iter": 50_000}
    has_penalty = inspect.signature(LogisticRegression).parameters["penalty"].default == "l2"
    if l1:
        options |= {"solver": "saga", "l1_ratio": l1 / (l1 + l2), "random_state": 0}
        options |= {"penalty": "elasticnet"} if has_penalty else {}
    model = LogisticRegression(**options).fit(X.toarray().astype(float), y)
    return model.coef_[0], model.intercept_[0]


def gradients(X, Y, weights, intercepts):
    """The derivative of the summed log loss by the weights (d, L) and by the intercepts (L,)."""
    X, Y = X.toarray().astype(float), Y.toarray().astype(float)
    logits = X @ weights.astype(float) + intercepts.astype(float)
    error = 1 / (1 + np.exp(-logits)) - Y
    return X.T @ error, error.sum(0)


@KINDS
@BY_PENALTY
def test_the_objective_reached_is_scikit_learns_optimum(l1, l2, is_sparse):
    X, Y = random_problem(is_sparse=is_sparse)
    weights, intercepts = fit_logistic(X, Y, ClassicalSettings(l1=l1, l2=l2, **TIGHT))
    reached = objective(X, Y, weights, intercepts, l1, l2)
    for label in range(Y.shape[1]):
        coefficients, intercept = sklearn_optimum(X, Y[:, [label]].toarray().ravel(), l1, l2)
        best = objective(
            X, Y[:, [label]], coefficients[:, None], np.array([intercept]), l1, l2
        ).item()
        assert reached[label] <= best * (1 + 2e-5)
        np.testing.assert_allclose(weights[:, label], coefficients, atol=0.02)


@pytest.mark.parametrize("n_labels", [1, 16, 33])
def test_threads_and_repeats_change_no_bit(n_labels):
    X, Y = random_problem(n=70, d=15, n_labels=n_labels, is_sparse=True, seed=5)
    runs = []
    for n_threads in (1, 2, 1, 2):
        with limited_threads(n_threads):
            runs.append(fit_logistic(X, Y, USUAL))
    for weights, intercepts in runs[1:]:
        np.testing.assert_array_equal(weights, runs[0][0])
        np.testing.assert_array_equal(intercepts, runs[0][1])


@pytest.mark.parametrize("n_labels", [0, 1, 16, 17, 33])
def test_any_number_of_labels_has_its_column(n_labels):
    X, Y = random_problem(n=30, d=4, n_labels=n_labels)
    done = []
    weights, intercepts = fit_logistic(X, Y, replace(USUAL, **TIGHT), on_labels_done=done.append)
    assert sum(done) == n_labels
    assert weights.shape == (4, n_labels)
    assert intercepts.shape == (n_labels,)
    by_weight, by_intercept = gradients(X, Y, weights, intercepts)
    assert (np.abs(by_intercept) < 0.02).all(), "a label was not fitted"
    assert np.isfinite(by_weight).all()


@pytest.mark.parametrize(("l1", "l2"), [*PENALTIES, (0.0, 0.0)])
def test_labels_that_are_always_or_never_there_stay_finite(l1, l2):
    X, Y = random_problem(n=40, d=6, is_sparse=True, seed=6)
    always, never = np.ones((40, 1), np.float32), np.zeros((40, 1), np.float32)
    Y = sp.csr_matrix(np.hstack([Y.toarray(), always, never]))
    weights, intercepts = fit_logistic(X, Y, ClassicalSettings(l1=l1, l2=l2))
    assert np.isfinite(weights).all()
    assert np.isfinite(intercepts).all()
    logits = X @ weights + intercepts
    assert (logits[:, -2] > 2).all()
    assert (logits[:, -1] < -2).all()


@BY_PENALTY
def test_a_feature_that_is_not_allowed_has_weight_zero_and_might_as_well_not_exist(l1, l2):
    X, Y = random_problem(n=80, d=10, n_labels=18, is_sparse=True, seed=10)
    mask = np.random.default_rng(0).random((10, 18)) < 0.5
    weights, intercepts = fit_logistic(
        X, Y, ClassicalSettings(l1=l1, l2=l2, **TIGHT), allowed=lambda labels: mask[:, labels]
    )
    assert (weights[~mask] == 0).all()
    for label in (0, 7, 17):
        few = X[:, np.flatnonzero(mask[:, label])]
        alone, alone_intercepts = fit_logistic(
            few, Y[:, [label]], ClassicalSettings(l1=l1, l2=l2, **TIGHT)
        )
        np.testing.assert_allclose(weights[mask[:, label], label], alone[:, 0], atol=5e-3)
        np.testing.assert_allclose(intercepts[label], alone_intercepts[0], atol=5e-3)


class RefusedError(Exception):
    """Raised from inside a fit."""


def test_the_number_of_threads_is_put_back():
    X, Y = random_problem(n_labels=20)

    def refuse(_):
        raise RefusedError

    before = torch.get_num_threads()
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            fit_logistic(X, Y, USUAL)
            assert torch.get_num_threads() == n_threads
            for broken in ({"on_labels_done": refuse}, {"allowed": refuse}):
                with pytest.raises(RefusedError):
                    fit_logistic(X, Y, USUAL, **broken)
                assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)
