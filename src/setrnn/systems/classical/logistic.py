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
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import scipy  # scipy.sparse is imported where it is first used
import torch
from torch import Tensor
from torch.nn.functional import softplus

from setrnn.config import ClassicalSettings
from setrnn.model.devices import thread_pool
from setrnn.systems.candidates import Bools, Floats32

# n documents, d features (the last one is the intercept), B labels of a block

BLOCK = 16  # labels per product: wide enough for SIMD, narrow enough for the cache
MEMORY = 5  # steps that L-BFGS remembers
MAX_HALVINGS = 12
SHRINK = 0.2  # finished labels leave a block once they are this share of it

Fitted = TypeVar("Fitted")


@dataclass(frozen=True)
class Point:
    """The weights of a block of labels, their objective, and the log-odds of the documents."""

    weights: Tensor  # (d, B)
    value: Tensor  # (B,)
    logits: Tensor  # (n, B)

    def columns(self, chosen: Tensor) -> Point:
        """Keep only some labels of the block."""
        return Point(*(each.index_select(-1, chosen) for each in self._arrays()))

    def write(self, at: Tensor, new: Point) -> None:
        """Overwrite some labels."""
        for mine, other in zip(self._arrays(), new._arrays(), strict=True):
            mine.index_copy_(-1, at, other)

    def _arrays(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.weights, self.value, self.logits


@dataclass(frozen=True)
class Problem:
    """The minimisation problem of a block of labels."""

    features: Tensor  # (n, d) sparse
    features_t: Tensor  # (d, n) sparse
    targets: Tensor  # (n, B) of 0 and 1
    settings: ClassicalSettings  # the penalties of all features but the intercept
    allowed: Tensor | None  # (d, B) which features a label may use
    n_others: int = 0  # documents with neither features nor labels: only the intercept counts
    # (n, B) log w of labels that are not known, -inf where they are: the loss of such a label is
    # -log(1 - p + w p), which is 0 for w = 1. None if all are known.
    open_weights: Tensor | None = None

    def columns(self, chosen: Tensor) -> Problem:
        """Keep only some labels of the block."""
        allowed = None if self.allowed is None else self.allowed.index_select(1, chosen)
        weights = self.open_weights
        return replace(
            self,
            targets=self.targets.index_select(1, chosen),
            allowed=allowed,
            open_weights=None if weights is None else weights.index_select(1, chosen),
        )

    def evaluate(self, weights: Tensor) -> Point:
        """Return the point of weights (d, B)."""
        logits = self.features @ weights  # (n, B)
        losses = softplus(logits) - self.targets * logits
        if self.open_weights is not None:
            losses -= softplus(logits + self.open_weights)
        value = losses.sum(0, dtype=torch.float64)
        value += self.settings.l1 * weights[:-1].abs().sum(0)
        value += 0.5 * self.settings.l2 * weights[:-1].square().sum(0)
        if self.n_others:
            value += self.n_others * softplus(weights[-1])
        return Point(weights, value, logits)

    def gradient(self, point: Point) -> Tensor:
        """Return the gradient of the smooth part of the objective, (d, B)."""
        residuals = point.logits.sigmoid() - self.targets
        if self.open_weights is not None:
            residuals -= (point.logits + self.open_weights).sigmoid()
        gradient = self.features_t @ residuals
        gradient[:-1].add_(point.weights[:-1], alpha=self.settings.l2)
        if self.n_others:
            gradient[-1].add_(point.weights[-1].sigmoid(), alpha=self.n_others)
        if self.allowed is not None:
            gradient *= self.allowed
        return gradient

    def pseudo_gradient(self, weights: Tensor, gradient: Tensor) -> Tensor:
        """Return the steepest one-sided derivative where |w| has a kink."""
        l1, sign = self.settings.l1, weights.sign()
        within_kink = gradient.clamp(-l1, l1).mul_(1 - sign.abs())
        slope = (gradient - within_kink).add_(sign, alpha=l1)
        slope[-1] = gradient[-1]
        return slope


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
        self.inverse_diagonal = self.inverse_diagonal.index_select(1, chosen)
        self.scale = self.scale[chosen]
        kept = [tuple(each.index_select(-1, chosen) for each in step) for step in self.steps]
        self.steps = deque(kept, maxlen=MEMORY)  # type: ignore[arg-type]


def line_search(problem: Problem, start: Point, slope: Tensor, direction: Tensor) -> Point:
    """Halve the step of each label until its objective decreases enough (Armijo).

    A step never leaves its orthant of the L1 term. A label without a good step stays where it is.
    """
    sign = start.weights.sign()
    orthant = sign - slope.sign().mul_(1 - sign.abs())
    here, result, length = start, start, 1.0
    todo = torch.arange(len(start.value))
    for _ in range(MAX_HALVINGS):
        weights = _keep_sign(torch.add(here.weights, direction, alpha=length), orthant)
        trial = problem.evaluate(weights)
        promised = ((weights - here.weights) * slope).sum(0)
        is_better = trial.value <= here.value + 1e-4 * promised
        if result is start:
            result = trial
        else:
            result.write(todo, trial)
        if is_better.all():
            return result
        failed = is_better.logical_not().nonzero()[:, 0]
        todo = todo[failed]
        problem, here, length = problem.columns(failed), here.columns(failed), length / 2
        orthant, slope, direction = (
            each.index_select(1, failed) for each in (orthant, slope, direction)
        )
    result.write(todo, here)
    return result


def _keep_sign(values: Tensor, sign: Tensor) -> Tensor:
    """Set values of another sign (-1, 0 or 1) to 0. Masks of booleans take far longer."""
    return (values * sign).clamp_(min=0).mul_(sign)


def fit_block(problem: Problem, curvature: Tensor, start: Tensor | None = None) -> Tensor:
    """Fit a block of labels; return their weights (d, B).

    A label is finished when a step lowers its objective by less than a share, the tolerance.
    Without weights to start from, only the intercepts start from other values than 0.
    """
    n_labels = problem.targets.shape[1]
    n_documents = torch.tensor(float(len(problem.targets) + problem.n_others))
    if problem.open_weights is not None:  # about as many as those for which a label is known
        n_documents = (n_documents - problem.open_weights.exp().sum(0)).clamp(min=1)
    weights = torch.zeros(len(curvature), n_labels)
    n_positive = problem.targets.sum(0).clamp(min=0.5).minimum(n_documents - 0.5)
    weights[-1] = torch.log(n_positive / (n_documents - n_positive))
    share = n_positive / n_documents
    diagonal = curvature[:, None] * (share * (1 - share))
    diagonal[:-1] += problem.settings.l2
    inverse_hessian = InverseHessian(diagonal + 1e-6)
    if start is not None:
        weights = start

    result = weights.clone()
    labels = torch.arange(n_labels)  # labels that are not finished
    point = problem.evaluate(weights)
    gradient = problem.gradient(point)
    for _ in range(problem.settings.max_steps):
        slope = problem.pseudo_gradient(point.weights, gradient)
        direction = _keep_sign(-inverse_hessian.times(slope), -slope.sign())
        new = line_search(problem, point, slope, direction)
        is_done = point.value - new.value <= problem.settings.tolerance * point.value
        if is_done.all():
            result[:, labels] = new.weights
            return result
        new_gradient = problem.gradient(new)
        inverse_hessian.update(new.weights - point.weights, new_gradient - gradient)
        point, gradient = new, new_gradient
        if is_done.sum() > SHRINK * len(labels):
            result[:, labels[is_done]] = point.weights[:, is_done]
            left = is_done.logical_not().nonzero()[:, 0]
            labels, point, problem = labels[left], point.columns(left), problem.columns(left)
            gradient = gradient.index_select(1, left)
            inverse_hessian.keep(left)
    result[:, labels] = point.weights
    return result


def fit_logistic(
    features: scipy.sparse.csr_matrix,
    targets: scipy.sparse.csr_matrix,
    settings: ClassicalSettings,
    allowed: Callable[[slice], Bools] | None = None,
    open_weights: Callable[[slice], Floats32] | None = None,
    on_labels_done: Callable[[int], None] = lambda n_labels: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit one regression per label; return weights (d, L) and intercepts (L,).

    Args:
        features: documents x features.
        targets: documents x labels, 0 or 1.
        settings: the two penalties, and when to stop.
        allowed: for a slice of labels, which features each may use (features, labels);
            all of them if not given.
        open_weights: for a slice of labels, log w of those that are not known: see `Problem`.
        on_labels_done: called with the number of labels whenever a block is finished.
    """
    of_documents = Features.of(features)
    n_labels = targets.shape[1]
    by_label = targets.tocsc()
    weights = np.empty((features.shape[1] + 1, n_labels), dtype=np.float32)

    def fit(labels: slice) -> None:
        mask = None
        if allowed is not None:
            columns = torch.from_numpy(allowed(labels)).float()
            mask = torch.cat([columns, torch.ones(1, columns.shape[1])])
        problem = Problem(
            features=of_documents.matrix,
            features_t=of_documents.matrix_t,
            targets=torch.from_numpy(by_label[:, labels].toarray().astype(np.float32)),
            settings=settings,
            allowed=mask,
            open_weights=None if open_weights is None else torch.from_numpy(open_weights(labels)),
        )
        found = fit_block(problem, of_documents.curvature)
        weights[:, labels] = found.numpy()
        on_labels_done(labels.stop - labels.start)

    map_blocks(fit, n_labels)
    return weights[:-1], weights[-1]


def map_blocks(fit: Callable[[slice], Fitted], n_labels: int) -> list[Fitted]:
    """Fit blocks of labels, each in one thread; return what was found, in their order."""
    blocks = [slice(i, min(i + BLOCK, n_labels)) for i in range(0, n_labels, BLOCK)]
    with thread_pool() as threads:
        return list(threads.map(fit, blocks))


@dataclass(frozen=True)
class Features:
    """The features of the documents and a column of ones for the intercept, in the forms needed."""

    rows: scipy.sparse.csr_matrix  # (n, d)
    columns: scipy.sparse.csr_matrix  # (d, n)
    matrix: Tensor  # (n, d) sparse
    matrix_t: Tensor  # (d, n) sparse
    curvature: Tensor  # (d,) sums of squares

    @classmethod
    def of(cls, features: scipy.sparse.csr_matrix) -> Features:
        """Add the column of ones to documents x features."""
        ones = scipy.sparse.csr_matrix(np.ones((features.shape[0], 1)))
        rows = scipy.sparse.hstack([features, ones], "csr", dtype=np.float32)
        columns = rows.T.tocsr()
        squares = np.asarray(rows.multiply(rows).sum(0), dtype=np.float32).ravel()
        curvature = torch.from_numpy(squares)
        return cls(rows, columns, to_torch(rows), to_torch(columns), curvature)


def to_torch(matrix: scipy.sparse.csr_matrix) -> Tensor:
    """Return a sparse matrix as a tensor."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32)),
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
            check_invariants=False,
        )
