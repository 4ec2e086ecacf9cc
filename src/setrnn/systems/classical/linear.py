"""What the classical systems share: tf-idf, one logistic regression a label, tensors on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from setrnn.config import ClassicalSettings
from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.known import Known

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class TrainingData:
    """What a classical system is fitted on."""

    features: sp.csr_matrix  # documents x tokens, tf-idf
    label_sets: Ragged  # ids below n_labels
    n_labels: int


class ClassicalModel(Protocol):
    """A fitted system: label sets with probabilities from tf-idf vectors."""

    @classmethod
    def fit(
        cls,
        data: TrainingData,
        settings: ClassicalSettings,
        on_labels_done: Callable[[int], None],
    ) -> ClassicalModel:
        """Train on documents and their label sets."""

    def candidates(
        self, features: sp.csr_matrix, n_sets: int, known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document that fit what is known of it.

        As many as asked for, or more; they know the marginals, whatever their number.
        """

    def set_log_probs(
        self, features: sp.csr_matrix, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G)."""

    @property
    def n_labels(self) -> int:
        """How many labels there are."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learned, by name."""

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> ClassicalModel:
        """Build the system from what it had learned."""


@dataclass(frozen=True)
class LinearWeights:
    """One linear function a label."""

    weights: npt.NDArray[np.float32]  # (d, L)
    intercepts: npt.NDArray[np.float32]  # (L,)

    def logits(self, features: sp.csr_matrix) -> npt.NDArray[np.float32]:
        """Return the log-odds of each label, documents x labels."""
        return np.asarray(features @ self.weights) + self.intercepts
