"""A classical system end to end: token ids to tf-idf to label sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from setrnn.config import ClassicalSettings, Config
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.methods import Method
from setrnn.progress import OnProgress, Progress, ignore_progress
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.classical.features import Tfidf
from setrnn.systems.classical.linear import Arrays, ClassicalModel, TrainingData
from setrnn.systems.known import Known, refuse_sequences, something_known

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class ClassicalSystem:
    """Features and a model on them; a subclass names the model."""

    tfidf: Tfidf
    model: ClassicalModel
    model_class: ClassVar[type[ClassicalModel]]
    emits_sequences: ClassVar[bool] = False
    max_training_labels: ClassVar[int | None] = None

    @classmethod
    def train(
        cls, prepared: Prepared, config: Config, on_progress: OnProgress = ignore_progress
    ) -> Self:
        """Fit on the train part of prepared data."""
        tfidf, data = training_data(prepared, config.classical)
        n_done = 0

        def count(n_labels: int) -> None:
            nonlocal n_done
            n_done += n_labels
            on_progress(Progress("training", n_done, data.n_labels, unit="labels"))

        return cls(tfidf, cls.model_class.fit(data, config.classical, count))

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
    def from_arrays(cls, arrays: Arrays, method: Method, config: Config, device: str) -> Self:
        """Rebuild the system from its arrays; it computes on the CPU, whatever the device."""
        return cls(Tfidf.from_arrays(arrays), cls.model_class.from_arrays(arrays))

    @property
    def max_labels(self) -> int | None:
        """No limit to the labels of a set."""
        return None

    @property
    def device_name(self) -> str:
        """Where the system computes: the CPU."""
        return "cpu"

    @property
    def sequences(self) -> None:
        """None: it emits no sequences."""
        return None

    def with_beam_width(self, beam_width: int) -> None:
        """Return None: there is no search to widen."""
        return

    def check_sizes(self, n_tokens: int, n_labels: int) -> None:
        """Raise ValueError if the weights are for other labels."""
        if self.model.n_labels != n_labels:
            raise ValueError(
                f"they are for {self.model.n_labels:,} labels, the list has {n_labels:,}"
            )


def training_data(prepared: Prepared, settings: ClassicalSettings) -> tuple[Tfidf, TrainingData]:
    """Turn the train split into tf-idf vectors and label sets."""
    train = prepared.split("train")
    tfidf, features = Tfidf.fit(train.tokens, prepared.encoder.n_tokens, settings.max_pairs)
    return tfidf, TrainingData(features, train.labels, len(prepared.labels))
