"""BR-support: BR's product, restricted to the label sets seen in training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import logsumexp

from setrnn.baselines.br import BinaryRelevance
from setrnn.baselines.features import indicator
from setrnn.baselines.linear import Arrays, TrainingData
from setrnn.config import ClassicalSettings
from setrnn.data.labels import distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.decoding.candidates import SetCandidates, pack_labels
from setrnn.decoding.products import sum_over_sets


@dataclass(frozen=True)
class SupportInference:
    """BR trained as ever; only sets seen in training can be predicted.

    The probability of a set is BR's product, divided by its sum over all the seen sets.
    """

    br: BinaryRelevance
    support: Ragged  # the distinct label sets of training

    @classmethod
    def fit(
        cls,
        data: TrainingData,
        settings: ClassicalSettings,
        on_labels_done: Callable[[int], None] = lambda n_labels: None,
    ) -> SupportInference:
        """Fit BR and collect the label sets."""
        support, _ = distinct_sets(data.label_sets)
        return cls(BinaryRelevance.fit(data, settings, on_labels_done), support)

    def log_probs(self, features: sp.csr_matrix) -> npt.NDArray[np.float64]:
        """Return log p of each seen set, documents x sets.

        The product over all L labels is, up to a constant of the document, the sum of the
        log-odds of the set's own labels: one sparse product for all sets.
        """
        logits = self.br.linear.logits(features).astype(np.float64)
        members = indicator(self.support, logits.shape[1])  # (sets, L)
        scores = np.asarray((members @ logits.T).T)
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

    def candidates(self, features: sp.csr_matrix, n_sets: int) -> SetCandidates:
        """Return the most probable of the seen sets."""
        log_probs = self.log_probs(features)
        n_sets = min(n_sets, len(self.support))
        best = np.argpartition(-log_probs, n_sets - 1, axis=1)[:, :n_sets]
        best_log_probs = np.take_along_axis(log_probs, best, axis=1)
        order = np.argsort(-best_log_probs, axis=1, kind="stable")
        best = np.take_along_axis(best, order, axis=1)
        return SetCandidates(
            pack_labels(self._padded_support[best]),
            np.take_along_axis(best_log_probs, order, axis=1),
        )

    @cached_property
    def _padded_support(self) -> npt.NDArray[np.int32]:
        lengths = self.support.lengths
        width = max(int(lengths.max(initial=0)), 1)
        padded = np.full((len(self.support), width), -1, dtype=np.int32)
        padded[np.arange(width) < lengths[:, None]] = self.support.values
        return padded

    def set_log_probs(
        self, features: sp.csr_matrix, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G).

        A set that was not seen in training has none: -inf.
        """
        logits = self.br.linear.logits(features).astype(np.float64)
        members = indicator(self.support, logits.shape[1])
        total = logsumexp(np.asarray((members @ logits.T).T), axis=1, keepdims=True)
        is_seen = np.array(
            [
                [tuple(row[row >= 0].tolist()) in self._seen for row in of_document]
                for of_document in np.sort(label_sets, axis=2)
            ]
        ).reshape(label_sets.shape[:2])
        return np.where(is_seen, sum_over_sets(logits, label_sets) - total, -np.inf)

    @cached_property
    def _seen(self) -> frozenset[tuple[int, ...]]:
        return frozenset(
            tuple(sorted(row.tolist())) for row in self.support.rows(0, len(self.support))
        )

    def marginals(self, features: sp.csr_matrix) -> npt.NDArray[np.float32]:
        """Return the summed probability of the seen sets that hold each label."""
        probs = np.exp(self.log_probs(features))
        members = indicator(self.support, self.br.linear.weights.shape[1])
        return np.asarray((members.T @ probs.T).T, dtype=np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return BR's arrays and the seen sets."""
        return {
            **self.br.arrays(),
            "support": np.asarray(self.support.values, dtype=np.int32),
            "support_offsets": self.support.offsets,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> SupportInference:
        """Build from BR's arrays and the seen sets."""
        support = Ragged(arrays["support"], arrays["support_offsets"])
        return cls(BinaryRelevance.from_arrays(arrays), support)
