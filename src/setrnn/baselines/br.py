"""BR: every label by itself; the probability of a set is the product over all labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from setrnn.baselines.features import indicator
from setrnn.baselines.linear import Arrays, LinearWeights, TrainingData
from setrnn.baselines.logistic import Penalties, fit_logistic
from setrnn.config import ClassicalSettings
from setrnn.decoding.candidates import SetCandidates, listed, log_sigmoid, pack_labels
from setrnn.decoding.known import Known, completed
from setrnn.decoding.products import ProductCandidates, sum_over_sets


@dataclass(frozen=True)
class BinaryRelevance:
    """Independent logistic regressions."""

    linear: LinearWeights

    @classmethod
    def fit(
        cls,
        data: TrainingData,
        settings: ClassicalSettings,
        on_labels_done: Callable[[int], None] = lambda n_labels: None,
    ) -> BinaryRelevance:
        """Fit one regression a label."""
        weights, intercepts = fit_logistic(
            data.features,
            indicator(data.label_sets, data.n_labels),
            Penalties(settings.l1, settings.l2),
            max_steps=settings.max_steps,
            tolerance=settings.tolerance,
            on_labels_done=on_labels_done,
        )
        return cls(LinearWeights(weights, intercepts))

    def candidates(
        self, features: sp.csr_matrix, n_sets: int, known: Known | None = None
    ) -> SetCandidates:
        """Return the most probable sets under the product, exactly."""
        logits = self.linear.logits(features)
        found = most_probable_products(logits, n_sets, known)
        if known is not None:
            return found
        return ProductCandidates(found.labels, found.log_probs, logits)

    def set_log_probs(
        self, features: sp.csr_matrix, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G)."""
        logits = self.linear.logits(features).astype(np.float64)
        of_none = log_sigmoid(-logits).sum(1, keepdims=True)
        return np.asarray(of_none + sum_over_sets(logits, label_sets))

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.linear.intercepts)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return weights and intercepts."""
        return {"weights": self.linear.weights, "intercepts": self.linear.intercepts}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> BinaryRelevance:
        """Build from weights and intercepts."""
        return cls(LinearWeights(arrays["weights"], arrays["intercepts"]))


def most_probable_products(
    logits: npt.NDArray[np.float32], n_sets: int, known: Known | None = None
) -> SetCandidates:
    """Return the K best sets when labels are independent.

    The best set takes each label of positive log-odds; turning label l costs |log-odds|.
    The K best combinations of turned labels use only the K - 1 cheapest ones: exact.
    A label that is known stands as it is known: turning it costs all.
    """
    n, n_labels = logits.shape
    n_sets = min(n_sets, 2 ** min(n_labels, 30))
    cost = np.abs(logits.astype(np.float64))
    is_in_best = logits > 0
    log_odds = cost  # of each label's place in the best set
    if known is not None:
        is_present, is_absent = known.is_present(n_labels), known.is_absent(n_labels)
        is_in_best = (is_in_best | is_present) & ~is_absent
        log_odds = np.where(is_in_best, logits, -logits).astype(np.float64)
        cost[is_present | is_absent] = np.inf
    n_turned = min(n_labels, n_sets - 1)
    cheapest = np.argpartition(cost, max(n_turned - 1, 0), axis=1)[:, :n_turned]
    total = np.zeros((n, 1))  # cost of each combination kept, (n, K)
    turned = np.zeros((n, 1, n_turned), dtype=bool)
    for step in range(n_turned):
        with_it = turned.copy()
        with_it[:, :, step] = True
        price = np.take_along_axis(cost, cheapest[:, step : step + 1], axis=1)
        total = np.concatenate([total, total + price], axis=1)
        turned = np.concatenate([turned, with_it], axis=1)
        order = np.argsort(total, axis=1, kind="stable")[:, :n_sets]
        total = np.take_along_axis(total, order, axis=1)
        turned = np.take_along_axis(turned, order[:, :, None], axis=1)

    best = log_sigmoid(log_odds).sum(1)
    # The labels that can be in a candidate: those of the best set, and the turned ones.
    is_fixed = is_in_best.copy()
    np.put_along_axis(is_fixed, cheapest, False, axis=1)
    fixed = listed(is_fixed)[:, None].repeat(total.shape[1], axis=1)  # (n, K, F)
    is_in = np.take_along_axis(is_in_best, cheapest, axis=1)[:, None] ^ turned
    flexible = np.where(is_in, cheapest[:, None], -1)  # (n, K, K - 1)
    labels = np.concatenate([fixed, flexible.astype(np.int32)], axis=2)
    log_probs = best[:, None] - total
    if known is not None:
        return completed(labels, log_probs, known)
    return SetCandidates(pack_labels(labels), log_probs)
