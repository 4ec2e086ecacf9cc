"""A classical system end to end: token ids to tf-idf to label sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.config import ClassicalSettings
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.classical.features import Tfidf
from setrnn.systems.classical.linear import Arrays, ClassicalModel, TrainingData
from setrnn.systems.known import Known, refuse_sequences, something_known


@dataclass(frozen=True)
class ClassicalSystem:
    """Features and a model on them."""

    tfidf: Tfidf
    model: ClassicalModel

    @classmethod
    def train(
        cls,
        model: type[ClassicalModel],
        prepared: Prepared,
        settings: ClassicalSettings,
        on_labels_done: Callable[[int], None] = lambda n_labels: None,
    ) -> ClassicalSystem:
        """Fit on the train split of a prepared folder."""
        tfidf, data = training_data(prepared, settings)
        return cls(tfidf, model.fit(data, settings, on_labels_done))

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document that fit what is known of it."""
        refuse_sequences(source)
        known = something_known(known, source)
        return self.model.candidates(self.tfidf.transform(tokens), n_sets, known)

    def set_log_probs(
        self, tokens: Ragged, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G)."""
        return self.model.set_log_probs(self.tfidf.transform(tokens), label_sets)

    def marginals(
        self, tokens: Ragged, candidates: SetCandidates | None = None
    ) -> npt.NDArray[np.float32]:
        """Return p(label | document), documents x labels; sets found before save time."""
        found = self.candidates(tokens, 1) if candidates is None else candidates
        return found.marginals(self.model.n_labels)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learned, by name."""
        return {**self.tfidf.arrays(), **self.model.arrays()}

    @classmethod
    def from_arrays(cls, model: type[ClassicalModel], arrays: Arrays) -> ClassicalSystem:
        """Build the system from what it had learned."""
        return cls(Tfidf.from_arrays(arrays), model.from_arrays(arrays))


def training_data(prepared: Prepared, settings: ClassicalSettings) -> tuple[Tfidf, TrainingData]:
    """Turn the train split into tf-idf vectors and label sets."""
    train = prepared.split("train")
    tfidf, features = Tfidf.fit(train.tokens, prepared.encoder.n_tokens, settings.max_pairs)
    return tfidf, TrainingData(features, train.labels, len(prepared.labels))
