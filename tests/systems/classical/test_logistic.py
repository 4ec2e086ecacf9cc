import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

from setrnn.systems.classical.logistic import Penalties, fit_logistic

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
    weights, intercepts = fit_logistic(X, Y, Penalties(l1, l2), **TIGHT)
    reached = objective(X, Y, weights, intercepts, l1, l2)
    for label in range(Y.shape[1]):
        coefficients, intercept = sklearn_optimum(X, Y[:, [label]].toarray().ravel(), l1, l2)
        best = objective(
            X, Y[:, [label]], coefficients[:, None], np.array([intercept]), l1, l2
        ).item()
        assert reached[label] <= best * (1 + 2e-5)
        np.testing.assert_allclose(weights[:, label], coefficients, atol=0.02)


@KINDS
@BY_PENALTY
def test_the_solution_meets_the_conditions_of_an_optimum(l1, l2, is_sparse):
    """The subgradient of the convex objective holds 0."""
    X, Y = random_problem(n=80, d=20, n_labels=5, is_sparse=is_sparse, seed=1)
    weights, intercepts = fit_logistic(X, Y, Penalties(l1, l2), **TIGHT)
    by_weight, by_intercept = gradients(X, Y, weights, intercepts)
    smooth = by_weight + l2 * weights
    is_zero = weights == 0
    slack = 0.02
    assert (np.abs(smooth[is_zero]) <= l1 + slack).all()
    assert (np.abs(smooth + l1 * np.sign(weights))[~is_zero] <= slack).all()
    assert (np.abs(by_intercept) <= slack).all()


def test_l1_gives_exact_zeros_and_more_of_it_gives_more():
    X, Y = random_problem(n=80, d=30, is_sparse=True, seed=2)
    n_zeros = [
        int((fit_logistic(X, Y, Penalties(l1, 0.01), **TIGHT)[0] == 0).sum())
        for l1 in (0.0, 0.3, 1.0, 3.0, 1000.0)
    ]
    assert n_zeros == sorted(n_zeros)
    assert n_zeros[1] > n_zeros[0]
    assert n_zeros[-1] == 30 * Y.shape[1]


def test_under_a_crushing_penalty_the_intercept_is_the_log_odds_of_the_label():
    X, Y = random_problem()
    weights, intercepts = fit_logistic(X, Y, Penalties(1000.0, 0.0), **TIGHT)
    share = np.asarray(Y.mean(0)).ravel()
    assert (weights == 0).all()
    np.testing.assert_allclose(intercepts, np.log(share / (1 - share)), atol=1e-3)


@BY_PENALTY
def test_the_default_tolerance_comes_close(l1, l2):
    X, Y = random_problem(n=200, d=40, is_sparse=True, seed=3)
    fast = objective(X, Y, *fit_logistic(X, Y, Penalties(l1, l2)), l1, l2)
    tight = objective(X, Y, *fit_logistic(X, Y, Penalties(l1, l2), **TIGHT), l1, l2)
    assert (fast <= tight * 1.02).all()
    assert (tight <= fast * (1 + 1e-6)).all()


def test_a_label_is_fitted_the_same_whatever_labels_stand_beside_it():
    X, Y = random_problem(n=100, d=12, n_labels=19, is_sparse=True, seed=4)
    penalties = Penalties(0.2, 0.05)
    together, together_intercepts = fit_logistic(X, Y, penalties, **TIGHT)
    order = np.random.default_rng(0).permutation(19)
    turned, _ = fit_logistic(X, Y[:, order], penalties, **TIGHT)
    np.testing.assert_allclose(turned, together[:, order], atol=5e-3)
    for label in (0, 15, 16, 18):
        alone, alone_intercepts = fit_logistic(X, Y[:, [label]], penalties, **TIGHT)
        np.testing.assert_allclose(alone[:, 0], together[:, label], atol=5e-3)
        np.testing.assert_allclose(alone_intercepts[0], together_intercepts[label], atol=5e-3)


@pytest.mark.parametrize("n_labels", [1, 15, 16, 17, 33])
def test_threads_and_repeats_change_no_bit(n_labels):
    X, Y = random_problem(n=70, d=15, n_labels=n_labels, is_sparse=True, seed=5)
    runs = [
        fit_logistic(X, Y, Penalties(0.1, 0.03), n_threads=n_threads)
        for n_threads in (1, 2, 1, 2, None)
    ]
    for weights, intercepts in runs[1:]:
        np.testing.assert_array_equal(weights, runs[0][0])
        np.testing.assert_array_equal(intercepts, runs[0][1])


@pytest.mark.parametrize("n_labels", [0, 1, 15, 16, 17, 32, 33])
def test_any_number_of_labels_has_its_column(n_labels):
    X, Y = random_problem(n=30, d=4, n_labels=n_labels)
    weights, intercepts = fit_logistic(X, Y, Penalties(), **TIGHT)
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
    weights, intercepts = fit_logistic(X, Y, Penalties(l1, l2))
    assert np.isfinite(weights).all()
    assert np.isfinite(intercepts).all()
    logits = X @ weights + intercepts
    assert (logits[:, -2] > 2).all()
    assert (logits[:, -1] < -2).all()


def test_without_penalties_separable_labels_stay_finite():
    X = sp.csr_matrix(np.array([[-2.0], [-1.0], [1.0], [2.0]], np.float32))
    Y = sp.csr_matrix(np.array([[0], [0], [1], [1]], np.float32))
    weights, intercepts = fit_logistic(X, Y, Penalties(0.0, 0.0), max_steps=500, tolerance=0.0)
    assert np.isfinite(weights).all()
    assert np.isfinite(intercepts).all()
    assert ((X @ weights + intercepts > 0) == Y.toarray()).all()


@BY_PENALTY
def test_a_feature_that_is_not_allowed_has_weight_zero_and_might_as_well_not_exist(l1, l2):
    X, Y = random_problem(n=80, d=10, n_labels=18, is_sparse=True, seed=10)
    mask = np.random.default_rng(0).random((10, 18)) < 0.5
    weights, intercepts = fit_logistic(
        X,
        Y,
        Penalties(l1, l2),
        allowed=lambda labels: torch.from_numpy(mask[:, labels].astype(np.float32)),
        **TIGHT,
    )
    assert (weights[~mask] == 0).all()
    for label in (0, 7, 17):
        few = X[:, np.flatnonzero(mask[:, label])]
        alone, alone_intercepts = fit_logistic(few, Y[:, [label]], Penalties(l1, l2), **TIGHT)
        np.testing.assert_allclose(weights[mask[:, label], label], alone[:, 0], atol=5e-3)
        np.testing.assert_allclose(intercepts[label], alone_intercepts[0], atol=5e-3)


@pytest.mark.parametrize("n_labels", [0, 1, 16, 17, 40])
def test_every_label_is_reported_as_done_once(n_labels):
    X, Y = random_problem(n=30, d=4, n_labels=n_labels)
    done = []
    fit_logistic(X, Y, Penalties(), on_labels_done=done.append)
    assert sum(done) == n_labels
    assert all(done)


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
            fit_logistic(X, Y, Penalties())
            assert torch.get_num_threads() == n_threads
            for broken in ({"on_labels_done": refuse}, {"allowed": refuse}):
                with pytest.raises(RefusedError):
                    fit_logistic(X, Y, Penalties(), **broken)
                assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)


def test_features_of_very_different_sizes_are_fitted():
    """Tf-idf beside raw counts; L-BFGS-B on the two halves of each weight is the judge."""
    X, Y = random_problem(n=100, n_labels=1, seed=13)
    scale = np.array([1e-3, 1e-2, 0.1, 1, 10, 100, 1, 1], np.float32)
    X = sp.csr_matrix(X.toarray() * scale)
    l1, l2 = 0.01, 0.01
    weights, intercepts = fit_logistic(X, Y, Penalties(l1, l2), max_steps=1000, tolerance=1e-9)
    (reached,) = objective(X, Y, weights, intercepts, l1, l2)
    best = split_optimum(X.toarray().astype(float), Y.toarray().ravel(), l1, l2)
    assert reached <= best * (1 + 1e-3)


def split_optimum(X, y, l1, l2):
    """The lowest objective of one label, with w = u - v and u, v >= 0."""
    from scipy.optimize import minimize

    d = X.shape[1]

    def evaluate(parameters):
        u, v, intercept = parameters[:d], parameters[d:-1], parameters[-1]
        w = u - v
        logits = X @ w + intercept
        error = 1 / (1 + np.exp(-logits)) - y
        value = (np.logaddexp(0, logits) - y * logits).sum() + l1 * (u + v).sum() + l2 / 2 * w @ w
        gradient = X.T @ error + l2 * w
        return value, np.concatenate([gradient + l1, l1 - gradient, [error.sum()]])

    bounds = [(0, None)] * (2 * d) + [(None, None)]
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-12}
    start = np.zeros(2 * d + 1)
    return minimize(evaluate, start, jac=True, bounds=bounds, options=options).fun
