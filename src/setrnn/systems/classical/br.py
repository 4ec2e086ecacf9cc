"""BR: each label by itself; p(set) is the product over all labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.config import ClassicalSettings
from setrnn.systems.candidates import Floats, Floats32, Ids, SetCandidates
from setrnn.systems.classical.active_features import fit_sparse_logistic
from setrnn.systems.classical.features import indicator
from setrnn.systems.classical.logistic import Penalties, fit_logistic
from setrnn.systems.classical.system import LinearWeights, TrainingData
from setrnn.systems.known import Known
from setrnn.systems.products import most_probable_products, product_log_probs
from setrnn.systems.system import Arrays
from setrnn.systems.true_marginals import MANY_LABELS


@dataclass(frozen=True)
class BinaryRelevance:
    """Independent logistic regressions."""

    linear: LinearWeights
    empty_shift: float = 0.0  # added to the log-odds of the empty set

    @classmethod
    def fit(
        cls,
        data: TrainingData,
        settings: ClassicalSettings,
        on_labels_done: Callable[[int], None] = lambda n_labels: None,
    ) -> BinaryRelevance:
        """Fit one regression per label, on the documents for which the label is known."""
        many, incomplete = data.n_labels >= MANY_LABELS, data.incomplete
        fit: Callable[..., tuple[Any, Floats32]] = fit_sparse_logistic if many else fit_logistic
        if incomplete is not None:
            fit = partial(fit_logistic, open_weights=incomplete.open_weights)
        weights, intercepts = fit(
            data.features,
            indicator(data.label_sets, data.n_labels),
            Penalties(settings.l1, settings.l2),
            max_steps=settings.max_steps,
            tolerance=settings.tolerance,
            on_labels_done=on_labels_done,
        )
        return cls(LinearWeights(weights, intercepts))

    def candidates(
        self, features: scipy.sparse.csr_matrix, n_sets: int, known: Known | None = None
    ) -> SetCandidates:
        """Return the most probable sets under the product, exactly."""
        logits = self.linear.logits(features)
        return most_probable_products(logits, n_sets, known, self.empty_shift)

    def set_log_probs(self, features: scipy.sparse.csr_matrix, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        return product_log_probs(self.linear.logits(features), label_sets, self.empty_shift)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self.linear.intercepts)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights and intercepts."""
        return self.linear.arrays()

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> BinaryRelevance:
        """Build from the weights and intercepts."""
        return cls(LinearWeights.from_arrays(arrays))
