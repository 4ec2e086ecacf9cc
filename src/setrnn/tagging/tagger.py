"""Tag, complete and explain texts with a trained model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from setrnn.data.example import KnownLabels
from setrnn.data.ragged import Ragged
from setrnn.data.text.notes import note_texts
from setrnn.errors import ConfigError, DataError
from setrnn.systems.candidates import Floats32, SetCandidates
from setrnn.systems.known import Known
from setrnn.systems.limits import Limits, SetLimits
from setrnn.systems.predicting import BatchSearch, ChosenSets
from setrnn.systems.rules import LABEL_RULE, count_candidates, find_rule
from setrnn.tagging.complete import complete_tokens, encode_known, problem_with_known
from setrnn.tagging.inputs import Document, check_top, encode_batches, pair_features, pair_known
from setrnn.tagging.prediction import (
    Completion,
    Marginals,
    Prediction,
    Predictions,
    add_notes,
    list_certificates,
    name_predictions,
)
from setrnn.tagging.trained_model import TrainedModel

if TYPE_CHECKING:
    from setrnn.tagging.explain.explain import Explanation


@dataclass(frozen=True, repr=False)
class Tagger(TrainedModel):
    """A trained system with its tokenizer and labels.

    `setrnn.train` makes a tagger, `setrnn.load` reads one from a model folder.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> text = "The ski race was cancelled because of the storm."
        >>> prediction = tagger.tag([text], top=2)[0]
        >>> prediction.labels
        ('weather', 'storm')
        >>> prediction.alternatives[0].labels
        ('sport', 'weather', 'storm')
        >>> tagger.complete(text, present={"sport"}).added
        ('weather', 'storm')
        >>> tagger.tag([text], limits=setrnn.Limits(max_labels=1))[0].labels
        ('storm',)
    """

    def __repr__(self) -> str:
        calibrated = "calibrated" if self.is_calibrated else "not calibrated"
        return f"<Tagger {self.method}: {len(self.labels):,} labels, {calibrated}>"

    def tag(
        self,
        texts: Sequence[str],
        rule: str | None = None,
        top: int = 1,
        features: Sequence[Sequence[str]] | None = None,
        limits: Limits | None = None,
        *,
        calibrated: bool = True,
    ) -> Predictions:
        """Predict a label set for each text.

        Args:
            texts: the documents.
            rule: the prediction rule; the model's own if not given. With "sequence", the
                probability of a set is that of its best sequence.
            top: how many sets to return per text: the predicted one and the most probable others.
            features: the features of each text, if the model was trained with features.
            limits: what all returned sets must satisfy.
            calibrated: whether to return calibrated probabilities, if the model has a
                calibration, or the model's own.
        """
        documents = pair_features(texts, features)
        found = self.tag_stream(documents, rule, top, limits, calibrated=calibrated)
        return Predictions(found, texts)

    def tag_stream(
        self,
        documents: Iterable[Document],
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        *,
        known: Iterable[KnownLabels] | None = None,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Predict a label set for each (text, features); reads one batch at a time.

        With `known` labels, one row per document, all sets agree with them. Probabilities stay
        p(set | x).
        """
        check_top(top)
        name, set_limits = self.rule_or_own(rule), self.known_limits(limits)
        n_sets = {find_rule(name).source: self.n_candidates(name, top, set_limits)}
        for tokens, notes, _, ids in self._batches(documents, known):
            search = BatchSearch(self.system, tokens, n_sets, ids)
            found = self.predictions(search, name, top, set_limits, calibrated=calibrated)
            yield from map(add_notes, found, notes)

    def tag_tokens(
        self,
        tokens: Ragged,
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        *,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Predict from token ids, such as those of a prepared folder."""
        check_top(top)
        name, set_limits = self.rule_or_own(rule), self.known_limits(limits)
        n_sets = {find_rule(name).source: self.n_candidates(name, top, set_limits)}
        for start in range(0, len(tokens), self.batch_size):
            stop = min(start + self.batch_size, len(tokens))
            search = BatchSearch(self.system, tokens.rows(start, stop), n_sets)
            yield from self.predictions(search, name, top, set_limits, calibrated=calibrated)

    def tag_with_marginals(
        self,
        documents: Sequence[Document],
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        *,
        calibrated: bool = True,
    ) -> tuple[list[Prediction], Marginals]:
        """Predict a label set and p(label | text) for each (text, features), in one batch.

        One search serves both, unless the rule chooses from the sequences of set-rnn-exact.
        """
        check_top(top)
        name, set_limits = self.rule_or_own(rule), self.known_limits(limits)
        texts, features = zip(*documents, strict=True)
        tokens = self.encoder.encode(texts, features)
        source, n_wanted = find_rule(name).source, self.n_candidates(name, top, set_limits)
        n_sets = {"sets": count_candidates()}  # for marginals: sequences give none
        n_sets[source] = max(n_wanted, n_sets.get(source, 0))
        search = BatchSearch(self.system, tokens, n_sets)
        found = self.predictions(search, name, top, set_limits, calibrated=calibrated)
        predictions = list(map(add_notes, found, note_texts(self.encoder, texts, tokens)))
        many = search.many_sets()
        return predictions, self.label_marginals(tokens, many, calibrated=calibrated)

    def predictions(
        self,
        search: BatchSearch,
        rule: str,
        top: int,
        limits: SetLimits,
        *,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Choose a set for each document of a search, which found `n_candidates` or more."""
        chosen = search.choose(rule, limits, self.thresholds)
        yield from self.name_chosen(search, rule, chosen, top, calibrated=calibrated)

    def name_chosen(
        self,
        search: BatchSearch,
        rule: str,
        chosen: ChosenSets,
        top: int,
        *,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Yield a prediction per document from the sets that a rule chose."""
        by, calibration = find_rule(rule), self.calibration
        choice, labels, log_probs = chosen.choice, chosen.labels, chosen.log_probs
        is_by_set = by.needs_best_only and by.source == "sets"
        proofs = list_certificates(labels, choice.candidates if is_by_set else None)
        accepted: list[bool | None] = [None] * len(labels)
        if calibration is not None and search.known is None:
            key = calibration.key_of(rule, by.source)
            found, trusted = calibration.apply(key, choice.candidates, labels, log_probs)
            if rule in calibration.acceptance:
                accepted = calibration.acceptance[rule].accepts(np.exp(trusted)).tolist()
            if calibrated:
                choice, log_probs = replace(choice, candidates=found), trusted
        probs = search.label_probs(by.source, len(self.labels))
        label_probs = is_accepted = None
        if probs is not None and len(self.labels):  # all training documents may be without labels
            label_probs = np.take_along_axis(probs, np.maximum(labels, 0), axis=1)
            if calibration is not None and calibration.label_curves is not None:
                trusted_probs = calibration.label_curves(label_probs, labels)
                if calibration.label_acceptance is not None:
                    is_accepted = calibration.label_acceptance.accepts(trusted_probs, labels)
                label_probs = trusted_probs if calibrated else label_probs
        yield from name_predictions(
            self.labels, choice, labels, log_probs, top, accepted, proofs, label_probs, is_accepted
        )

    def label_marginals(
        self, tokens: Ragged, candidates: SetCandidates, *, calibrated: bool = True
    ) -> Marginals:
        """Return p(label | document), given candidates that stand for the whole distribution."""
        many = candidates.for_rule(LABEL_RULE)
        probs = self.system.for_rule(LABEL_RULE).marginals(tokens, many)
        probs = self.calibrate_labels(probs) if calibrated else probs
        return Marginals(probs, many.missing_mass())

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
        self, texts: Any, present: Any = (), absent: Any = (), top: int = 3, features: Any = None
    ) -> Completion | list[Completion]:
        """Find the most probable set that agrees with the known labels of a text, or of each text.

        Args:
            texts: one document, or a list of documents.
            present: labels known to be right: a collection, or one per text of a list.
            absent: labels known to be wrong, in the same form.
            top: how many sets to return per text.
            features: the features of the text, or of each text.
        """
        if isinstance(texts, str):
            of_one = None if features is None else [features]
            return self.complete([texts], [present], [absent], top, of_one)[0]
        known = pair_known(present, absent, len(texts))
        return list(self.complete_stream(pair_features(texts, features), known, top))

    def complete_stream(
        self, documents: Iterable[Document], known: Iterable[KnownLabels], top: int = 3
    ) -> Iterator[Completion]:
        """Complete the labels of each (text, features); reads one batch at a time."""
        check_top(top)
        for tokens, notes, rows, ids in self._batches(documents, known):
            assert ids is not None
            closure = self.closure if self.keeps_closed else None
            found = complete_tokens(self.system, self.labels, tokens, rows, ids, top, closure)
            yield from map(add_notes, found, notes)

    def check_known(self, known: KnownLabels) -> None:
        """Raise DataError if known labels do not fit the labels of the model."""
        closure = self.closure if self.keeps_closed else None
        problem = problem_with_known(
            self.labels, known.present, known.absent, self.max_labels, closure
        )
        if problem is not None:
            raise DataError(problem)

    def _batches(
        self, documents: Iterable[Document], known: Iterable[KnownLabels] | None
    ) -> Iterator[tuple[Ragged, list[tuple[str, ...]], list[KnownLabels], Known | None]]:
        """Yield token ids in batches, with notes on each text, what is known, and its label ids."""
        closure = self.closure if self.keeps_closed else None
        rows_left, n_before = iter(known or ()), 0
        for texts, tokens in encode_batches(self.encoder, documents, self.batch_size):
            rows, notes = (
                list(islice(rows_left, len(tokens))),
                note_texts(self.encoder, texts, tokens),
            )
            if known is None:
                yield tokens, notes, rows, None
                continue
            if len(rows) < len(tokens):
                raise DataError("Known labels are given for fewer documents than there are.")
            ids = encode_known(self.labels, rows, self.max_labels, n_before, closure)
            yield tokens, notes, rows, ids
            n_before += len(rows)

    def explain(
        self,
        text: str,
        features: Sequence[str] = (),
        top: int = 12,
        rule: str | None = None,
        labels: Collection[str] | None = None,
    ) -> Explanation:
        """Show how the model tags a text: the words for each label, sequences, sets, steps.

        Args:
            text: the document.
            features: its features.
            top: how many sequences and sets to list; the beam width limits the sequences.
            rule: the prediction rule; the model's own if not given.
            labels: the set to explain instead of the predicted one, in any order. It excludes
                a rule.
        """
        from setrnn.tagging.explain.explain import explain_text

        check_top(top)
        return explain_text(self, text, features, top, rule, labels)

    def predict_proba(
        self, texts: Sequence[str], features: Sequence[Sequence[str]] | None = None
    ) -> Floats32:
        """Return p(label | text), texts x labels, in the order of `self.labels.names`.

        The probabilities are calibrated if the model has a calibration.
        """
        return self.marginals(texts, features).probs

    def marginals(
        self,
        texts: Sequence[str],
        features: Sequence[Sequence[str]] | None = None,
        *,
        calibrated: bool = True,
    ) -> Marginals:
        """Return p(label | text), and the probability of the sets that were not found."""
        probs, missing = [np.zeros((0, len(self.labels)), np.float32)], [np.zeros(0)]
        for _, tokens in encode_batches(
            self.encoder, pair_features(texts, features), self.batch_size
        ):
            candidates = self.system.candidates(tokens, count_candidates())
            found = self.label_marginals(tokens, candidates, calibrated=calibrated)
            probs.append(found.probs)
            missing.append(found.missing_mass)
        return Marginals(np.concatenate(probs), np.concatenate(missing))


def check_tagger(tagger: object) -> None:
    """Raise ConfigError for anything but a Tagger, such as the path of a model."""
    if not isinstance(tagger, Tagger):
        raise ConfigError(f"A Tagger is needed, got {tagger!r:.60}. Write setrnn.load(FOLDER).")
