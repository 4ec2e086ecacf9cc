"""A trained model that tags texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setrnn import __version__
from setrnn.calibration import Calibration
from setrnn.config import Config
from setrnn.data.labels import LabelVocabulary
from setrnn.data.model_folder import SavedModel, load_model, save_model
from setrnn.data.ragged import Ragged
from setrnn.data.tokenizing import TextEncoder
from setrnn.decoding import Rule, SetCandidates, find_rule
from setrnn.errors import ConfigError, DataError, ModelError
from setrnn.methods import METHODS, System, find_method

if TYPE_CHECKING:
    from setrnn.explanation import Explanation

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
    calibration: Calibration | None = None

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
            rule: the prediction rule; the method's own if not given. By "sequence", a set has
                the probability of its best sequence; by the others, its own.
            top: how many sets to give in all: the predicted one and, as alternatives, the most
                probable others.
            features: each document's features, where the model was trained with some.
        """
        return list(self.tag_stream(_documents(texts, features), rule, top))

    def tag_stream(
        self, documents: Iterable[tuple[str, Sequence[str]]], rule: str | None = None, top: int = 1
    ) -> Iterator[Prediction]:
        """Predict a label set for each (text, features), in batches as they come."""
        _check_top(top)
        self.rule_or_own(rule)
        for tokens in self._batches(documents):
            yield from self.tag_tokens(tokens, rule, top)

    def tag_tokens(
        self, tokens: Ragged, rule: str | None = None, top: int = 1
    ) -> Iterator[Prediction]:
        """Predict from token ids, such as those of a prepared folder; a batch at a time."""
        _check_top(top)
        chosen = find_rule(self.rule_or_own(rule))
        for start in range(0, len(tokens), BATCH):
            part = tokens.rows(start, min(start + BATCH, len(tokens)))
            candidates = self.system.candidates(part, top, chosen.source)
            yield from self.predictions(candidates, chosen, top)

    def predictions(self, candidates: SetCandidates, rule: Rule, top: int) -> Iterator[Prediction]:
        """Choose among the candidates of each document."""
        labels, log_probs = rule.choose(candidates)
        for document, row in enumerate(labels):
            predicted = self._names(row)
            # The predicted set need not be the first candidate, nor be one at all.
            others = (
                each for each in self._scored(candidates, document) if each.labels != predicted
            )
            yield Prediction(predicted, _prob(log_probs[document]), tuple(islice(others, top - 1)))

    def _scored(self, candidates: SetCandidates, document: int) -> Iterator[ScoredSet]:
        for row, log_prob in zip(
            candidates.labels[document], candidates.log_probs[document], strict=True
        ):
            if log_prob > -np.inf:
                yield ScoredSet(self._names(row), _prob(log_prob))

    def rule_or_own(self, rule: str | None) -> str:
        """Return the rule, or the one the paper predicts with for this method."""
        return find_method(self.method).rule_or_own(rule)

    def explain(
        self, text: str, features: Sequence[str] = (), top: int = 12, rule: str | None = None
    ) -> Explanation:
        """Show what a recurrent system makes of a text: sequences, sets, words attended to.

        Args:
            text: the document.
            features: its features.
            top: how many sequences and sets to list, at most; the beam width is the limit.
            rule: the prediction rule; the method's own if not given.
        """
        from setrnn.explanation import explain_text
        from setrnn.neural import NeuralSystem

        _check_top(top)
        if not isinstance(text, str):
            raise DataError(f"One text is wanted, got {type(text).__name__}.")
        if isinstance(features, str):
            raise DataError("Features are a list of strings, got one string.")
        if not (isinstance(self.system, NeuralSystem) and find_method(self.method).emits_sequences):
            raise ConfigError(
                f"Only a system that emits labels one by one can be explained, and '{self.method}' "
                "does not. Train a recurrent system such as set-rnn."
            )
        if self.config.encoder.is_pretrained:
            raise ConfigError(
                "An explanation shows words, and a transformer reads parts of words. Train with "
                "--set encoder.name=gru to explain."
            )
        chosen = self.rule_or_own(rule)
        return explain_text(
            self.system, self.encoder, self.labels, text, features, top, self.method, chosen
        )

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
        saved = SavedModel(
            self.method,
            self.config,
            self.encoder,
            self.labels,
            arrays,
            self.notes,
            None if self.calibration is None else self.calibration.as_dict(),
        )
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


def _check_top(top: int) -> None:
    if not isinstance(top, int) or top < 1:
        raise ConfigError(f"top must be a whole number of at least 1, got {top}.")


def _prob(log_prob: float) -> float:
    return float(np.exp(log_prob))


def load(folder: str | Path, device: str = "auto") -> Tagger:
    """Load a trained model onto a device: cpu, cuda, or auto for the GPU where there is one."""
    saved = load_model(Path(folder))
    if saved.method not in METHODS:
        raise ModelError(f"{folder} holds a '{saved.method}' model, which this setrnn lacks.")
    method = find_method(saved.method)
    try:
        system = method.rebuild(saved.arrays, saved.config, device)
        if method.is_neural:
            _check_sizes(saved, system)
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"{folder} holds other weights than its '{saved.method}' model has: "
            f"{_first_line(error)} Train or copy the model again."
        ) from error
    calibration = None if saved.calibration is None else Calibration.from_dict(saved.calibration)
    return Tagger(
        saved.method,
        saved.config,
        saved.encoder,
        saved.labels,
        system,
        dict(saved.notes),
        calibration,
    )


def _check_sizes(saved: SavedModel, system: System) -> None:
    """Refuse weights for other words or labels than those listed."""
    from setrnn.neural import NeuralSystem

    assert isinstance(system, NeuralSystem)
    n_words, n_labels = system.network.encoder.n_tokens, system.network.decoder.n_labels
    # A transformer may have more embeddings than its tokenizer has tokens.
    n_needed = saved.encoder.n_tokens
    fits = n_words >= n_needed if saved.config.encoder.is_pretrained else n_words == n_needed
    if not fits or n_labels != len(saved.labels):
        raise ValueError(
            f"they are for {n_words:,} words and {n_labels:,} labels, the lists have "
            f"{saved.encoder.n_tokens:,} and {len(saved.labels):,}"
        )


def _first_line(error: Exception) -> str:
    """Say what does not fit, in one line; torch lists every array on a line of its own."""
    if isinstance(error, KeyError):
        return f"{error} is missing."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    chosen = lines[1] if len(lines) > 1 and lines[0].endswith(":") else "".join(lines[:1])
    return shorten(chosen.rstrip(". "), 160, placeholder=" ...") + "."
