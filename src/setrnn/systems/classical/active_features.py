"""Logistic regressions of many labels, each on the few features that can matter to it.

With an L1 penalty, a feature keeps weight 0 as long as the derivative of the log loss stays within
the penalty. For a label of few documents, that is true of nearly all features: those with a larger
derivative at the start are fitted, and features that violate the condition afterwards are added
(Tibshirani et al. 2012, "Strong rules for discarding predictors"). Documents with none of the
features of a block differ only in the intercept: they are counted, not computed. The solution is
that of `fit_logistic`; weights are kept sparse.
"""

# n documents, d features (the last one is the intercept), B labels of a block, F active features

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.sparse is imported where it is first used
import torch
from torch import Tensor

from setrnn.config import ClassicalSettings
from setrnn.systems.candidates import Bools, Floats32, Ints
from setrnn.systems.classical.logistic import Features, Problem, fit_block, map_blocks, to_torch

MOST_ROUNDS = 3  # of adding features
SLACK = 1.1  # a feature is added if its derivative exceeds the penalty by this factor
LEAST_WEIGHT = 0.01  # smaller ones become 0 (Babbar and Schölkopf 2017, "DiSMEC")


def fit_sparse_logistic(
    features: scipy.sparse.csr_matrix,
    targets: scipy.sparse.csr_matrix,
    settings: ClassicalSettings,
    on_labels_done: Callable[[int], None] = lambda n_labels: None,
) -> tuple[scipy.sparse.csr_matrix, Floats32]:
    """Fit one regression per label; return sparse weights (d - 1, L) and intercepts (L,).

    The arguments are those of `fit_logistic`.
    """
    of_documents = Features.of(features)
    sums = np.asarray(of_documents.columns.sum(axis=1), dtype=np.float32)
    active = ActiveFeatures(of_documents, sums, settings)
    by_label = targets.tocsc()

    def fit(labels: slice) -> tuple[scipy.sparse.csc_matrix, Floats32]:
        found = active.fit(by_label[:, labels])
        on_labels_done(labels.stop - labels.start)
        return found

    blocks = map_blocks(fit, targets.shape[1])
    weights = scipy.sparse.hstack([each for each, _ in blocks], "csr")
    return weights, np.concatenate([each for _, each in blocks])


@dataclass(frozen=True)
class ActiveFeatures:
    """Fits blocks of labels on the features that can have weights other than 0."""

    of_documents: Features
    sums: Floats32  # (d, 1) of the features, over the documents
    settings: ClassicalSettings

    def fit(self, targets: scipy.sparse.csc_matrix) -> tuple[scipy.sparse.csc_matrix, Floats32]:
        """Fit the labels of targets (n, B); return weights (d - 1, B) and intercepts (B,)."""
        is_active = self._list_first(targets)
        active, found = self._fit(is_active, targets, None)
        for _ in range(MOST_ROUNDS - 1):
            is_missed = self._list_missed(active, found, targets) & ~is_active
            if not is_missed.any():
                break
            is_active |= is_missed
            start = torch.zeros(len(is_active), targets.shape[1])
            start[active] = found
            active, found = self._fit(is_active, targets, start)
        weights = found[:-1].numpy()  # (F - 1, B)
        kept = scipy.sparse.coo_matrix(np.where(np.abs(weights) < LEAST_WEIGHT, 0, weights))
        where = (kept.data, (active.numpy()[kept.row], kept.col))
        shape = (len(is_active) - 1, targets.shape[1])
        return scipy.sparse.csc_matrix(where, shape=shape), found[-1].numpy()

    def _fit(
        self, is_active: Bools, targets: scipy.sparse.csc_matrix, start: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Fit on some features: return their places (F,) and weights (F, B)."""
        active = torch.from_numpy(np.flatnonzero(is_active))
        problem = self._restrict(active.numpy(), targets)
        curvature = self.of_documents.curvature[active]
        weights = None if start is None else start[active]
        return active, fit_block(problem, curvature, weights)

    def _restrict(self, active: Ints, targets: scipy.sparse.csc_matrix) -> Problem:
        """Return the problem on some features, and on the documents with them or with labels."""
        features_t = self.of_documents.columns[active[:-1]]  # (F - 1, n) without the intercept
        is_used = np.zeros(targets.shape[0], dtype=bool)
        is_used[features_t.indices] = is_used[targets.indices] = True
        rows = np.flatnonzero(is_used)
        place = (np.cumsum(is_used) - 1).astype(np.int32)
        used = (features_t.data, place[features_t.indices], features_t.indptr)
        used_t = scipy.sparse.vstack(
            [
                scipy.sparse.csr_matrix(used, shape=(len(active) - 1, len(rows))),
                scipy.sparse.csr_matrix(np.ones((1, len(rows)), dtype=np.float32)),
            ],
            "csr",
        )
        return Problem(
            features=to_torch(used_t.T.tocsr()),
            features_t=to_torch(used_t),
            targets=torch.from_numpy(targets[rows].toarray().astype(np.float32)),
            settings=self.settings,
            allowed=None,
            n_others=targets.shape[0] - len(rows),
        )

    def _list_first(self, targets: scipy.sparse.csc_matrix) -> Bools:
        """Mark the features whose weights leave 0 in the first step, and the intercept: (d,)."""
        share = np.asarray(targets.mean(axis=0)).reshape(1, -1)  # (1, B)
        in_positive = (targets.T.tocsr() @ self.of_documents.rows).toarray().T  # (d, B)
        derivatives = self.sums * share - in_positive
        is_active = (np.abs(derivatives) > self.settings.l1).any(axis=1)
        is_active[-1] = True
        return np.asarray(is_active)

    def _list_missed(
        self, active: Tensor, weights: Tensor, targets: scipy.sparse.csc_matrix
    ) -> Bools:
        """Mark the features whose derivatives exceed the penalty, given weights (F, B): (d,)."""
        of_all = torch.zeros(len(self.sums), targets.shape[1])
        of_all[active] = weights
        residuals = (self.of_documents.matrix @ of_all).sigmoid()  # (n, B)
        residuals -= torch.from_numpy(targets.toarray().astype(np.float32))
        derivatives = self.of_documents.matrix_t @ residuals  # (d, B)
        return np.asarray((derivatives.abs() > SLACK * self.settings.l1).any(dim=1).numpy())
