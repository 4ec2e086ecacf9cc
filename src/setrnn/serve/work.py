"""The library calls that process a batch of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setrnn.data.example import KnownLabels
from setrnn.serve.registry import ServedModel
from setrnn.systems.rules import Limits
from setrnn.tagging.explanation import Explanation
from setrnn.tagging.prediction import Completion, Prediction
from setrnn.tagging.tagger import Tagger

MIN_MARGINAL, MAX_MARGINALS = 0.001, 50

Document = tuple[str, Sequence[str]]  # a text and its features


@dataclass(frozen=True)
class Tagged:
    """A prediction and, if requested, the labels in descending order of probability."""

    prediction: Prediction
    marginals: Sequence[tuple[str, float]] | None = None
    missing_mass: float | None = None


@dataclass(frozen=True)
class Tagging:
    """Predict the set of each document."""

    model: ServedModel
    rule: str
    top: int
    limits: Limits
    is_calibrated: bool
    with_marginals: bool

    def run(self, documents: Sequence[Document]) -> list[Tagged]:
        """Tag a batch."""
        tagger, wanted = self.model.tagger, (self.rule, self.top, self.limits)
        if not self.with_marginals:
            found = tagger.tag_stream(documents, *wanted, calibrated=self.is_calibrated)
            return [Tagged(prediction) for prediction in found]
        predictions, marginals = tagger.tag_with_marginals(
            documents, *wanted, calibrated=self.is_calibrated
        )
        rows = zip(predictions, marginals.probs, marginals.missing_mass, strict=True)
        return [Tagged(each, _ranked(tagger, row), float(missing)) for each, row, missing in rows]


@dataclass(frozen=True)
class Completing:
    """Predict the sets of documents with known labels."""

    model: ServedModel
    top: int

    def run(self, documents: Sequence[tuple[Document, KnownLabels]]) -> list[Completion]:
        """Complete a batch."""
        texts, known = zip(*documents, strict=True)
        return list(self.model.tagger.complete_stream(texts, known, self.top))


@dataclass(frozen=True, eq=False)
class Explaining:
    """Explain documents one by one."""

    model: ServedModel
    rule: str | None
    top: int
    labels: Sequence[str] | None = None

    def run(self, documents: Sequence[Document]) -> list[Explanation]:
        """Explain each text."""
        tagger = self.model.tagger
        return [
            tagger.explain(text, features, self.top, self.rule, self.labels)
            for text, features in documents
        ]


def _ranked(tagger: Tagger, probs: Any) -> list[tuple[str, float]]:  # noqa: ANN401 (an array)
    """Return the labels that are not too improbable, in descending order of probability."""
    order = np.argsort(-probs, kind="stable")[:MAX_MARGINALS]
    names = tagger.labels.names
    return [(names[label], float(probs[label])) for label in order if probs[label] >= MIN_MARGINAL]
