"""A trained model that tags texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn import __version__
from setrnn.config import Config
from setrnn.data.labels import LabelVocabulary
from setrnn.data.model_folder import SavedModel, load_model, save_model
from setrnn.data.ragged import Ragged
from setrnn.data.tokenizing import TextEncoder
from setrnn.decoding import Rule, SetCandidates, find_rule
from setrnn.errors import ConfigError, DataError, ModelError
from setrnn.methods import METHODS, System, find_method

BATCH = 1024


@dataclass(frozen=True)
class ScoredSet:
    """A label set and its probability."""

    labels: tuple[str, ...]
    probability: float


@dataclass(frozen=True)
class Prediction:
    """What is predicted for a document, and the sets that were likely besides."""

    labels: tuple[str, ...]
    probability: float
    alternatives: tuple[ScoredSet, ...] = ()


@dataclass(frozen=True)
class Tagger:
    """A trained system with its tokenizer and labels."""

    method: str
    config: Config
    encoder: TextEncoder
    labels: LabelVocabulary
    system: System
    notes: dict[str, Any] = field(default_factory=dict)

    def tag(
        self,
        texts: Sequence[str],
        rule: str | None = None,
        top: int = 1,
        features: Sequence[Sequence[str]] | None = None,
    ) -> list[Prediction]:
        """Predict a label set for each text.

        Args:
            texts: the documents.
            rule: the prediction rule; the method's own if not given.
            top: how many sets to give in all: the predicted one and, as alternatives, the most
                probable others.
            features: each document's features, where the model was trained with some.
        """
        return list(self.tag_stream(_documents(texts, features), rule, top))

    def tag_stream(
        self, documents: Iterable[tuple[str, Sequence[str]]], rule: str | None = None, top: int = 1
    ) -> Iterator[Prediction]:
        """Predict a label set for each (text, features), in batches as they come."""
        if not isinstance(top, int) or top < 1:
            raise ConfigError(f"top must be a whole number of at least 1, got {top}.")
        self.rule_or_own(rule)
        for tokens in self._batches(documents):
            yield from self.tag_tokens(tokens, rule, top)

    def tag_tokens(
        self, tokens: Ragged, rule: str | None = None, top: int = 1
    ) -> Iterator[Prediction]:
        """Predict from token ids, such as those of a prepared folder; a batch at a time."""
        chosen = find_rule(self.rule_or_own(rule))
        for start in range(0, len(tokens), BATCH):
            part = tokens.rows(start, min(start + BATCH, len(tokens)))
            candidates = self.system.candidates(part, top, chosen.source)
            yield from self.predictions(candidates, chosen, top)

    def predictions(self, candidates: SetCandidates, rule: Rule, top: int) -> Iterator[Prediction]:
        """Choose among the candidates of each document."""
        labels, log_probs = rule.choose(candidates)
        for document, row in enumerate(labels):
            alternatives = [
                ScoredSet(self._names(candidates.labels[document, rank]), _prob(log_prob))
                for rank, log_prob in enumerate(candidates.log_probs[document][: top + 1])
                if log_prob > -np.inf
            ]
            predicted = self._names(row)
            others = tuple(each for each in alternatives if each.labels != predicted)
            yield Prediction(predicted, _prob(log_probs[document]), others[: top - 1])

    def rule_or_own(self, rule: str | None) -> str:
        """Return the rule, or the one the paper predicts with for this method."""
        chosen = find_method(self.method).rule if rule is None else rule
        find_rule(chosen)
        return chosen

    def predict_proba(
        self, texts: Sequence[str], features: Sequence[Sequence[str]] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return p(label | text), texts x labels, in the order of `self.labels.names`."""
        batches = self._batches(_documents(texts, features))
        parts = [self.system.marginals(tokens) for tokens in batches]
        return np.concatenate([np.zeros((0, len(self.labels)), np.float32), *parts])

    def save(self, folder: str | Path) -> None:
        """Write the model's folder, whole or not at all."""
        arrays = self.system.arrays()
        saved = SavedModel(self.method, self.config, self.encoder, self.labels, arrays, self.notes)
        save_model(Path(folder), saved, __version__)

    def _batches(self, documents: Iterable[tuple[str, Sequence[str]]]) -> Iterator[Ragged]:
        texts: list[str] = []
        features: list[Sequence[str]] = []
        for number, (text, row) in enumerate(documents):
            if not isinstance(text, str):
                kind = type(text).__name__
                raise DataError(f"Text {number} must be a string, got {kind}.")
            texts.append(text)
            features.append(row)
            if len(texts) == BATCH:
                yield self.encoder.encode(texts, features)
                texts, features = [], []
        if texts:
            yield self.encoder.encode(texts, features)

    def _names(self, row: npt.NDArray[np.int32]) -> tuple[str, ...]:
        return tuple(self.labels.names[label] for label in row if label >= 0)


def _documents(
    texts: Sequence[str], features: Sequence[Sequence[str]] | None
) -> Iterable[tuple[str, Sequence[str]]]:
    """Pair each text with its features."""
    if isinstance(texts, str):
        raise DataError("A list of texts is wanted, got one text. Write [text].")
    if features is None:
        return ((text, ()) for text in texts)
    if len(features) != len(texts):
        raise DataError(f"There are {len(texts)} texts but {len(features)} rows of features.")
    if any(isinstance(row, str) for row in features):
        raise DataError("Features are a list of strings for each text, got one string.")
    return zip(texts, features, strict=True)


def _prob(log_prob: float) -> float:
    return float(np.exp(log_prob))


def load(folder: str | Path, device: str = "auto") -> Tagger:
    """Load a trained model onto a device: cpu, cuda, or auto for the GPU where there is one."""
    saved = load_model(Path(folder))
    if saved.method not in METHODS:
        raise ModelError(f"{folder} holds a '{saved.method}' model, which this setrnn lacks.")
    try:
        system = find_method(saved.method).rebuild(saved.arrays, saved.config, device)
    except (KeyError, RuntimeError) as error:
        raise ModelError(f"{folder} lacks {error} for a '{saved.method}' model.") from error
    return Tagger(
        saved.method, saved.config, saved.encoder, saved.labels, system, dict(saved.notes)
    )
