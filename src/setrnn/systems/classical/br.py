"""BR: each label by itself; p(set) is the product over all labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from setrnn.config import ClassicalSettings
from setrnn.systems.candidates import Floats, Floats32, Ids, SetCandidates
from setrnn.systems.classical.features import Tfidf, indicator
from setrnn.systems.classical.system import (
    ClassicalSystem,
    LinearWeights,
    OnLabelsDone,
    TrainingData,
    fit_regressions,
    ignore_labels,
)
from setrnn.systems.known import Known
from setrnn.systems.products import most_probable_products, product_log_probs

if TYPE_CHECKING:
    from typing_extensions import Self


def fit_linear(
    data: TrainingData, settings: ClassicalSettings, on_labels_done: OnLabelsDone = ignore_labels
) -> LinearWeights:
    """Fit one regression per label, on the documents for which the label is known."""
    targets = indicator(data.label_sets, data.n_labels)
    fitted = fit_regressions(
        data.features, targets, settings, on_labels_done, incomplete=data.incomplete
    )
    return LinearWeights(*fitted)


@dataclass(frozen=True)
class BinaryRelevance(ClassicalSystem):
    """Independent logistic regressions."""

    @classmethod
    def fit(
        cls,
        tfidf: Tfidf,
        data: TrainingData,
        settings: ClassicalSettings,
        on_labels_done: OnLabelsDone = ignore_labels,
    ) -> Self:
        """Fit one regression per label."""
        return cls(tfidf, fit_linear(data, settings, on_labels_done))

    def find_sets(self, logits: Floats32, n_sets: int, known: Known | None = None) -> SetCandidates:
        """Return the most probable sets under the product, exactly."""
        return most_probable_products(logits, n_sets, known, self.empty_shift)

    def score_sets(self, logits: Floats32, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        return product_log_probs(logits, label_sets, self.empty_shift)
