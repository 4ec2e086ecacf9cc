"""Logistic regressions with L1 and L2 penalties, many labels at once.

Each label is its own convex problem: minimise the summed log loss plus l1 |w| + l2/2 |w|^2,
without a penalty on the intercept. OWL-QN (L-BFGS with an L1 term; Andrew and Gao 2007) solves it,
here with the curvature at the start as preconditioner, and with a block of labels in one sparse
product, so that the matrix is read once per block. Each block has its own thread; nothing is summed
across threads, so results repeat exactly.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import softplus

# n documents, d features (the last one is the intercept), B labels of a block

BLOCK = 16  # labels per product: wide enough for SIMD, narrow enough for the cache
MEMORY = 5  # steps that L-BFGS remembers
MAX_HALVINGS = 12
SHRINK = 0.2  # finished labels leave a block once they are this share of it


@dataclass(frozen=True)
class Penalties:
    """The strength of the two penalties, against the SUMMED log loss: l2 = 1/C."""

    l1: float = 0.1
    l2: float = 0.03


@dataclass(frozen=True)
class Problem:
    """The minimisation problem of a block of labels."""

    features: Tensor  # (n, d) sparse
    features_t: Tensor  # (d, n) sparse
    targets: Tensor  # (n, B) of 0 and 1
    l1: Tensor  # (d, 1)
    l2: Tensor  # (d, 1)
    allowed: Tensor | None  # (d, B) which features a label may use

    def columns(self, chosen: Tensor) -> Problem:
        """Keep only some labels of the block."""
        allowed = None if self.allowed is None else self.allowed[:, chosen]
        return replace(self, targets=self.targets[:, chosen], allowed=allowed)

    def evaluate(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objective (B,) and the gradient of its smooth part (d, B)."""
        logits = self.features @ weights  # (n, B)
        loss = (softplus(logits) - self.targets * logits).sum(0, dtype=torch.float64)
        penalty = self.l1 * weights.abs() + 0.5 * self.l2 * weights.square()
        gradient = self.features_t @ (logits.sigmoid_() - self.targets) + self.l2 * weights
        if self.allowed is not None:
            gradient *= self.allowed
        return loss + penalty.sum(0, dtype=torch.float64), gradient

    def pseudo_gradient(self, weights: Tensor, gradient: Tensor) -> Tensor:
        """Return the steepest one-sided derivative where |w| has a kink."""
        within_kink = gradient.clamp(-self.l1, self.l1) * (weights == 0)
        return gradient + self.l1 * weights.sign() - within_kink


class InverseHessian:
    """The L-BFGS estimate of the inverse Hessian, one per label of a block."""

    def __init__(self, diagonal: Tensor) -> None:
        self.inverse_diagonal = diagonal.reciprocal()
        self.scale = torch.ones(diagonal.shape[1])
        self.steps: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=MEMORY)

    def update(self, step: Tensor, change: Tensor) -> None:
        """Update the estimate with a step and the change of the gradient along it."""
        curvature = (step * change).sum(0)
        is_usable = curvature > 1e-10
        inverse = torch.where(is_usable, 1 / curvature, 0)
        self.steps.append((step, change, inverse))
        norm = (change.square() * self.inverse_diagonal).sum(0)
        self.scale = torch.where(is_usable, curvature / norm, self.scale)

    def times(self, gradient: Tensor) -> Tensor:
        """Apply the estimate to a gradient (the two-loop recursion)."""
        result = gradient.clone()
        factors = []
        for step, change, inverse in reversed(self.steps):
            factor = inverse * (step * result).sum(0)
            result.addcmul_(change, factor.expand_as(change), value=-1)
            factors.append(factor)
        result *= self.inverse_diagonal
        result *= self.scale
        for (step, change, inverse), factor in zip(self.steps, reversed(factors), strict=True):
            correction = factor - inverse * (change * result).sum(0)
            result.addcmul_(step, correction.expand_as(step))
        return result

    def keep(self, chosen: Tensor) -> None:
        """Drop the other labels."""
        self.inverse_diagonal = self.inverse_diagonal[:, chosen]
        self.scale = self.scale[chosen]
        kept = [tuple(each[..., chosen] for each in step) for step in self.steps]
        self.steps = deque(kept, maxlen=MEMORY)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Point:
    """The weights of a block of labels, their objective, and the gradient of its smooth part."""

    weights: Tensor  # (d, B)
    value: Tensor  # (B,)
    gradient: Tensor  # (d, B)

    def columns(self, chosen: Tensor) -> Point:
        """Keep only some labels of the block."""
        return Point(self.weights[:, chosen], self.value[chosen], self.gradient[:, chosen])

    def replace_at(self, at: Tensor, new: Point) -> Point:
        """Return a copy with other values for some labels."""
        result = Point(self.weights.clone(), self.value.clone(), self.gradient.clone())
        result.weights[:, at] = new.weights
        result.value[at] = new.value
        result.gradient[:, at] = new.gradient
        return result


def line_search(problem: Problem, start: Point, slope: Tensor, direction: Tensor) -> Point:
    """Halve the step of each label until its objective decreases enough (Armijo).

    A step never leaves its orthant of the L1 term. A label without a good step stays where it is.
    """
    # Masks are multiplied: torch.where is many times slower on the CPU.
    orthant = start.weights.sign() - slope.sign() * (start.weights == 0)
    result, here = start, start
    todo = torch.arange(len(start.value))
    length = 1.0
    for _ in range(MAX_HALVINGS):
        weights = here.weights + length * direction
        weights *= weights * orthant >= 0
        trial = Point(weights, *problem.evaluate(weights))
        promised = ((weights - here.weights) * slope).sum(0)
        is_better = trial.value <= here.value + 1e-4 * promised
        if is_better.all() and len(todo) == len(start.value):
            return trial
        result = result.replace_at(todo[is_better], trial.columns(is_better))
        todo = todo[~is_better]
        if not len(todo):
            break
        problem, here, length = problem.columns(~is_better), here.columns(~is_better), length / 2
        orthant, slope, direction = (each[:, ~is_better] for each in (orthant, slope, direction))
    return result


def fit_block(problem: Problem, curvature: Tensor, max_steps: int, tolerance: float) -> Tensor:
    """Fit a block of labels; return their weights (d, B).

    A label is finished when a step lowers its objective by less than this share (`tolerance`).
    """
    n_documents, n_labels = problem.targets.shape
    weights = torch.zeros(len(curvature), n_labels)
    n_positive = problem.targets.sum(0).clamp(0.5, n_documents - 0.5)
    weights[-1] = torch.log(n_positive / (n_documents - n_positive))
    share = n_positive / n_documents
    inverse_hessian = InverseHessian(curvature[:, None] * share * (1 - share) + problem.l2 + 1e-6)

    result = weights.clone()
    labels = torch.arange(n_labels)  # labels that are not finished
    point = Point(weights, *problem.evaluate(weights))
    for _ in range(max_steps):
        slope = problem.pseudo_gradient(point.weights, point.gradient)
        direction = -inverse_hessian.times(slope)
        direction *= direction * slope < 0
        new = line_search(problem, point, slope, direction)
        is_done = point.value - new.value <= tolerance * point.value
        if is_done.all():
            result[:, labels] = new.weights
            return result
        inverse_hessian.update(new.weights - point.weights, new.gradient - point.gradient)
        point = new
        if is_done.sum() > SHRINK * len(labels):
            result[:, labels[is_done]] = point.weights[:, is_done]
            labels, point, problem = (
                labels[~is_done],
                point.columns(~is_done),
                problem.columns(~is_done),
            )
            inverse_hessian.keep(~is_done)
    result[:, labels] = point.weights
    return result


def fit_logistic(
    features: sp.csr_matrix,
    targets: sp.csr_matrix,
    penalties: Penalties,
    allowed: Callable[[slice], Tensor] | None = None,
    max_steps: int = 60,
    tolerance: float = 1e-3,
    n_threads: int | None = None,
    on_labels_done: Callable[[int], None] = lambda n_labels: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit one regression per label; return weights (d, L) and intercepts (L,).

    Args:
        features: documents x features.
        targets: documents x labels, 0 or 1.
        penalties: the two penalties.
        allowed: for a slice of labels, which features each may use (features, labels);
            all of them if not given.
        max_steps: the most steps of OWL-QN.
        tolerance: a label is finished when a step lowers its objective by less than this share.
        n_threads: how many blocks of labels are fitted in parallel.
        on_labels_done: called with the number of labels whenever a block is finished.
    """
    n_documents, n_features = features.shape
    n_labels = targets.shape[1]
    with_intercept = sp.hstack(
        [features, sp.csr_matrix(np.ones((n_documents, 1)))], "csr", dtype=np.float32
    )
    matrix, matrix_t = _to_torch(with_intercept), _to_torch(with_intercept.T.tocsr())
    curvature = torch.from_numpy(
        np.asarray(with_intercept.multiply(with_intercept).sum(0), dtype=np.float32).ravel()
    )
    is_penalised = torch.ones(n_features + 1, 1)
    is_penalised[-1] = 0
    by_label = targets.tocsc()
    weights = np.empty((n_features + 1, n_labels), dtype=np.float32)

    def fit(start: int) -> None:
        labels = slice(start, min(start + BLOCK, n_labels))
        mask = None
        if allowed is not None:
            mask = torch.cat([allowed(labels), torch.ones(1, labels.stop - labels.start)])
        problem = Problem(
            features=matrix,
            features_t=matrix_t,
            targets=torch.from_numpy(by_label[:, labels].toarray().astype(np.float32)),
            l1=is_penalised * penalties.l1,
            l2=is_penalised * penalties.l2,
            allowed=mask,
        )
        weights[:, labels] = fit_block(problem, curvature, max_steps, tolerance).numpy()
        on_labels_done(labels.stop - labels.start)

    n_threads_before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        workers = ThreadPoolExecutor(
            n_threads or n_threads_before, initializer=torch.set_num_threads, initargs=(1,)
        )
        with workers as pool:
            list(pool.map(fit, range(0, n_labels, BLOCK)))
    finally:
        torch.set_num_threads(n_threads_before)
    return weights[:-1], weights[-1]


def _to_torch(matrix: sp.csr_matrix) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32)),
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
            check_invariants=False,
        )
