"""A trained model that tags texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from setrnn import __version__
from setrnn.config import Config
from setrnn.data.batches import take_rows
from setrnn.data.example import KnownLabels
from setrnn.data.labels import LabelVocabulary
from setrnn.data.model_folder import SavedModel, save_model
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import ConfigError, DataError
from setrnn.methods import find_method
from setrnn.systems.known import Known
from setrnn.systems.registry import choose_rule
from setrnn.systems.rules import (
    MANY_SETS,
    Choice,
    Limits,
    Rule,
    SetCandidates,
    SetLimits,
    choose_sets,
    find_rule,
)
from setrnn.systems.rules.marginal_rules import NO_THRESHOLDS
from setrnn.systems.scored_set import ScoredSet
from setrnn.systems.system import System
from setrnn.tagging.calibration import Acceptance, Calibration
from setrnn.tagging.completion import Completion, complete_tokens, encode_known, known_of_each
from setrnn.tagging.prediction import Marginals, Prediction, certificates_of

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation

BATCH = 1024
SEEN_SETS, SEEN_SETS_OFFSETS = "seen_sets", "seen_sets_offsets"  # arrays of a model


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
    seen_sets: Ragged | None = None  # the label sets of training, for limits

    @classmethod
    def trained_on(
        cls,
        prepared: Prepared,
        method: str,
        config: Config,
        system: System,
        notes: dict[str, Any] | None = None,
    ) -> Tagger:
        """Give a system that was trained on prepared data its tokenizer, labels and seen sets."""
        return cls(
            method,
            config,
            prepared.encoder,
            prepared.labels,
            system,
            {} if notes is None else notes,
            seen_sets=prepared.seen_sets(),
        )

    def tag(
        self,
        texts: Sequence[str],
        rule: str | None = None,
        top: int = 1,
        features: Sequence[Sequence[str]] | None = None,
        limits: Limits | None = None,
        *,
        calibrated: bool = True,
    ) -> list[Prediction]:
        """Predict a label set for each text.

        Args:
            texts: the documents.
            rule: the prediction rule; the method's own if not given. By "sequence", a set has
                the probability of its best sequence; by the others, its own.
            top: how many sets to give in all: the predicted one and, as alternatives, the most
                probable others.
            features: each document's features, where the model was trained with some.
            limits: what the sets must be like, the alternatives too.
            calibrated: give calibrated probabilities where the model has a calibration; the
                model's own if not.
        """
        documents = _documents(texts, features)
        return list(self.tag_stream(documents, rule, top, limits, calibrated=calibrated))

    def tag_stream(
        self,
        documents: Iterable[tuple[str, Sequence[str]]],
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        *,
        known: Iterable[KnownLabels] | None = None,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Predict a label set for each (text, features), in batches as they come.

        Where labels are `known`, one row for each document, the sets fit them; probabilities
        stay p(set | x).
        """
        _check_top(top)
        self.rule_or_own(rule)
        self.known_limits(limits)
        if known is None:
            for tokens in self._batches(documents):
                yield from self.tag_tokens(tokens, rule, top, limits, calibrated=calibrated)
        else:
            for tokens, _, ids in self._batches_with_known(documents, known):
                yield from self.tag_tokens(tokens, rule, top, limits, known=ids)

    def tag_tokens(
        self,
        tokens: Ragged,
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        *,
        known: Known | None = None,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Predict from token ids, such as those of a prepared folder; a batch at a time.

        What is known of a document changes p(set): it is then the model's own.
        """
        _check_top(top)
        name, set_limits = self.rule_or_own(rule), self.known_limits(limits)
        chosen = find_rule(name)
        acceptance = self.acceptance(name) if known is None else None
        n_sets = max(chosen.n_sets(top, set_limits), self.n_candidates(chosen))
        for start in range(0, len(tokens), BATCH):
            part = tokens.rows(start, min(start + BATCH, len(tokens)))
            part_known = None if known is None else known.rows(slice(start, start + BATCH))
            candidates = self.system.candidates(part, n_sets, chosen.source, part_known)
            yield from self.predictions(
                part,
                candidates,
                chosen,
                top,
                set_limits,
                calibrated=calibrated and known is None,
                acceptance=acceptance,
            )

    def predictions(
        self,
        tokens: Ragged,
        candidates: SetCandidates,
        rule: Rule,
        top: int,
        limits: SetLimits | None = None,
        *,
        calibrated: bool = True,
        acceptance: Acceptance | None = None,
    ) -> Iterator[Prediction]:
        """Choose a set for each document, from as many candidates as `n_candidates` asks for."""

        def ask(rows: npt.NDArray[np.int64], sets: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
            return self.system.set_log_probs(take_rows(tokens, rows), sets)

        limits = self.known_limits(None) if limits is None else limits
        thresholds = None if self.calibration is None else self.calibration.thresholds
        choice = Choice(candidates, limits, ask, thresholds)
        labels, log_probs = choose_sets(rule, choice)
        accepted: list[bool | None] = [None] * len(labels)
        is_by_set = rule.needs_best_only and rule.source == "sets"
        certificates = certificates_of(labels, candidates if is_by_set else None)
        if self.calibration is not None and (calibrated or acceptance is not None):
            found, trusted = self.calibration.apply(rule.source, candidates, labels, log_probs)
            if acceptance is not None:
                accepted = acceptance.accepts(np.exp(trusted)).tolist()
            if calibrated:
                choice, log_probs = replace(choice, candidates=found), trusted
        for document, row in enumerate(labels):
            predicted = self._names(row)
            # The predicted set need not be the first candidate, nor be one at all.
            others = (each for each in self._scored(choice, document) if each.labels != predicted)
            yield Prediction(
                predicted,
                _prob(log_probs[document]),
                tuple(islice(others, top - 1)),
                accepted[document],
                certificates[document],
            )

    def n_candidates(self, rule: Rule) -> int:
        """Return how many candidates `predictions` needs besides those that are to be given."""
        return 1 if self.calibration is None else self.calibration.n_candidates(rule.source)

    def acceptance(self, rule: str) -> Acceptance | None:
        """Return which predictions by a rule need no second look, if that was fitted."""
        return None if self.calibration is None else self.calibration.acceptance.get(rule)

    def _scored(self, choice: Choice, document: int) -> Iterator[ScoredSet]:
        candidates = choice.candidates
        for rank in np.flatnonzero(choice.fits[document]):
            row, log_prob = candidates.labels[document, rank], candidates.log_probs[document, rank]
            yield ScoredSet(self._names(row), _prob(log_prob))

    def rule_or_own(self, rule: str | None) -> str:
        """Return the rule, or the one the paper predicts with for this method."""
        chosen = choose_rule(find_method(self.method), rule)
        has_thresholds = self.calibration is not None and self.calibration.thresholds is not None
        if find_rule(chosen).needs_thresholds and not has_thresholds:
            raise ConfigError(NO_THRESHOLDS.format(rule=chosen))
        return chosen

    def known_limits(self, limits: Limits | None) -> SetLimits:
        """Turn the names of limits into this model's labels; refuse what no set can meet."""
        return (Limits() if limits is None else limits).for_labels(self.labels, self.seen_sets)

    @overload
    def complete(  # type: ignore[overload-overlap]  # a string is a sequence too
        self,
        texts: str,
        present: Collection[str] = (),
        absent: Collection[str] = (),
        top: int = 3,
        features: Sequence[str] | None = None,
    ) -> Completion: ...

    @overload
    def complete(
        self,
        texts: Sequence[str],
        present: Sequence[Collection[str]] = (),
        absent: Sequence[Collection[str]] = (),
        top: int = 3,
        features: Sequence[Sequence[str]] | None = None,
    ) -> list[Completion]: ...

    def complete(
        self,
        texts: Any,
        present: Any = (),
        absent: Any = (),
        top: int = 3,
        features: Any = None,
    ) -> Completion | list[Completion]:
        """Find the most probable set of a text, or of each, that fits the labels known of it.

        Args:
            texts: one document, or a list of them.
            present: labels known to be right: a collection, or one for each text of a list.
            absent: labels known to be wrong, likewise.
            top: how many sets to give in all.
            features: the document's features, or those of each.
        """
        if isinstance(texts, str):
            of_one = None if features is None else [features]
            return self.complete([texts], [present], [absent], top, of_one)[0]
        known = known_of_each(present, absent, len(texts))
        return list(self.complete_stream(_documents(texts, features), known, top))

    def complete_stream(
        self,
        documents: Iterable[tuple[str, Sequence[str]]],
        known: Iterable[KnownLabels],
        top: int = 3,
    ) -> Iterator[Completion]:
        """Complete the labels of each (text, features), in batches as they come."""
        _check_top(top)
        for tokens, rows, ids in self._batches_with_known(documents, known):
            yield from complete_tokens(self.system, self.labels, tokens, rows, ids, top)

    def with_beam_width(self, beam_width: int) -> Tagger:
        """Return the same model with a search of another width: wider finds more, and takes longer.

        Thresholds and calibration stay those of the width they were fitted with.
        """
        if not isinstance(beam_width, int):
            raise ConfigError(f"beam_width must be a whole number, got {beam_width!r}.")
        system = self.system.with_beam_width(beam_width)
        if system is None:
            raise ConfigError(f"'{self.method}' has no search to widen: train a network.")
        search = replace(self.config.search, beam_width=beam_width)
        return replace(self, config=replace(self.config, search=search), system=system)

    @property
    def max_labels(self) -> int | None:
        """The most labels a set may have; None for no limit."""
        return self.system.max_labels

    def _batches_with_known(
        self, documents: Iterable[tuple[str, Sequence[str]]], known: Iterable[KnownLabels]
    ) -> Iterator[tuple[Ragged, list[KnownLabels], Known]]:
        known, n_before = iter(known), 0
        for tokens in self._batches(documents):
            rows = list(islice(known, len(tokens)))
            if len(rows) < len(tokens):
                raise DataError("Known labels are given for fewer documents than there are.")
            yield tokens, rows, encode_known(self.labels, rows, self.max_labels, n_before)
            n_before += len(rows)

    def explain(
        self,
        text: str,
        features: Sequence[str] = (),
        top: int = 12,
        rule: str | None = None,
        labels: Collection[str] | None = None,
    ) -> Explanation:
        """Show what a recurrent system makes of a text: sequences, sets, words attended to.

        Args:
            text: the document.
            features: its features.
            top: how many sequences and sets to list, at most; the beam width is the limit.
            rule: the prediction rule; the method's own if not given.
            labels: the set to explain instead of the predicted one, in any order: its own orders,
                their sum, and the words of its best order. No rule goes with it.
        """
        from setrnn.tagging.explanation import explain_text, given_set

        _check_top(top)
        if not isinstance(text, str):
            raise DataError(f"One text is wanted, got {type(text).__name__}.")
        if isinstance(features, str):
            raise DataError("Features are a list of strings, got one string.")
        chosen = self.explained_rule(rule, labels)
        given = None if labels is None else given_set(self.labels, labels, self.max_labels)
        system = self.system.sequences
        assert system is not None, "checked by explained_rule"
        return explain_text(
            system, self.encoder, self.labels, text, features, top, self.method, chosen, given
        )

    @property
    def why_not_explained(self) -> str | None:
        """What keeps `explain` from this model, and the way out; None if nothing does."""
        if not self.system.emits_sequences:
            return (
                f"Only a system that emits labels one by one can be explained, and '{self.method}' "
                "does not. Train a recurrent system such as set-rnn."
            )
        if self.config.encoder.is_pretrained:
            return (
                "An explanation shows words, and a transformer reads parts of words. Train with "
                "--set encoder.name=gru to explain."
            )
        return None

    def explained_rule(self, rule: str | None, labels: Collection[str] | None = None) -> str | None:
        """Return the rule to explain by, or its own; refuse what cannot be explained.

        A set that is given is chosen by none.
        """
        if self.why_not_explained is not None:
            raise ConfigError(self.why_not_explained)
        if labels is not None:
            if rule is not None:
                raise ConfigError(
                    "A given set is not chosen by a rule. Leave out the rule, or the labels."
                )
            return None
        chosen = self.rule_or_own(rule)
        if not find_rule(chosen).needs_best_only:
            raise ConfigError(f"Rule '{chosen}' cannot be explained. Use rule 'set' or 'sequence'.")
        return chosen

    def predict_proba(
        self, texts: Sequence[str], features: Sequence[Sequence[str]] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return p(label | text), texts x labels, in the order of `self.labels.names`."""
        return self.marginals(texts, features).probs

    def marginals(
        self, texts: Sequence[str], features: Sequence[Sequence[str]] | None = None
    ) -> Marginals:
        """Return p(label | text), and the probability of the sets it does not rest on."""
        probs, missing = [np.zeros((0, len(self.labels)), np.float32)], [np.zeros(0)]
        for tokens in self._batches(_documents(texts, features)):
            candidates = self.system.candidates(tokens, MANY_SETS)
            probs.append(self.system.marginals(tokens, candidates))
            missing.append(candidates.missing_mass())
        return Marginals(np.concatenate(probs), np.concatenate(missing))

    def save(self, folder: str | Path) -> None:
        """Write the model's folder, whole or not at all."""
        arrays = self.system.arrays()
        if self.seen_sets is not None:
            arrays[SEEN_SETS] = self.seen_sets.values.astype(np.int32)
            arrays[SEEN_SETS_OFFSETS] = np.asarray(self.seen_sets.offsets, dtype=np.int64)
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
