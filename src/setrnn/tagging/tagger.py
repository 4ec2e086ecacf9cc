"""Tag, complete and explain texts with a trained model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from setrnn.config import check_device_name
from setrnn.data.example import KnownLabels
from setrnn.data.ragged import Ragged
from setrnn.data.text.notes import note_texts
from setrnn.errors import ConfigError, DataError
from setrnn.models.hub import name_place
from setrnn.systems.candidates import (
    Bools,
    Floats32,
    Ids,
    SetCandidates,
    list_columns,
    to_probability,
)
from setrnn.systems.limits import Limits, SetLimits
from setrnn.systems.predicting import BatchSearch, ChosenSets
from setrnn.systems.rules import LABEL_RULE, count_candidates, find_rule
from setrnn.tagging.inputs import Document, check_top, encode_batches, pair_features, pair_known
from setrnn.tagging.prediction import (
    IMPOSSIBLE,
    Certificate,
    Completion,
    Marginals,
    Prediction,
    Predictions,
    add_notes,
    complete_tokens,
    list_certificates,
    name_labels,
    name_set,
    problem_with_known,
)
from setrnn.tagging.trained_model import TrainedModel

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation
    from setrnn.tagging.inputs import Features


@dataclass(frozen=True)
class TagOptions:
    """How to predict, resolved for one model by `Tagger.resolve`."""

    rule: str
    top: int  # sets to return
    limits: SetLimits
    calibrated: bool
    n_sets: int  # candidates to search for


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
        features: Features = None,
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
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Predict a label set for each (text, features); reads one batch at a time.

        A rule or limits that the model cannot use are refused at once, before a document is read.
        """
        options = self.resolve(rule, top, limits, calibrated)
        batches = encode_batches(self.encoder, documents, self.batch_size)
        return (
            add_notes(each, notes)
            for texts, tokens in batches
            for each, notes in zip(
                self._search(tokens, options), note_texts(self.encoder, texts, tokens), strict=True
            )
        )

    def tag_tokens(self, tokens: Ragged, rule: str | None = None) -> Iterator[Prediction]:
        """Predict from token ids, such as those of a prepared folder."""
        options, size = self.resolve(rule), self.batch_size
        for start in range(0, len(tokens), size):
            yield from self._search(tokens.rows(start, min(start + size, len(tokens))), options)

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
        options = self.resolve(rule, top, limits, calibrated)
        texts, features = zip(*documents, strict=True)
        tokens = self.encoder.encode(texts, features)
        search = BatchSearch(self.system, tokens, count_by_source([options]))
        found = self.name_chosen(search, options)
        predictions = list(map(add_notes, found, note_texts(self.encoder, texts, tokens)))
        many = search.many_sets()
        return predictions, self.label_marginals(tokens, many, calibrated=calibrated)

    def resolve(
        self,
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        calibrated: bool = True,
    ) -> TagOptions:
        """Return how to predict: by the model's own rule if none is given.

        Raise ConfigError for a rule or limits that the model cannot use.
        """
        check_top(top)
        name, set_limits = self.rule_or_own(rule), self.known_limits(limits, rule)
        by = find_rule(name)
        scaling = self.fitted.scaling_of(name, by.source)
        needed = 1 if scaling is None else scaling.n_candidates
        n_sets = count_candidates(by, top, set_limits, needed)
        return TagOptions(name, top, set_limits, calibrated, n_sets)

    def _search(self, tokens: Ragged, options: TagOptions) -> Iterator[Prediction]:
        """Search a batch of documents for candidates, and name the sets that are chosen."""
        search = BatchSearch(self.system, tokens, {find_rule(options.rule).source: options.n_sets})
        return self.name_chosen(search, options)

    def name_chosen(
        self, search: BatchSearch, options: TagOptions, chosen: ChosenSets | None = None
    ) -> Iterator[Prediction]:
        """Yield a prediction per document, from the sets that the rule chooses or has chosen.

        The search must have found `options.n_sets` or more.
        """
        if chosen is None:
            chosen = search.choose(options.rule, options.limits, self.fitted.thresholds)
        by, fitted = find_rule(options.rule), self.fitted
        candidates, labels, log_probs = chosen.choice.candidates, chosen.labels, chosen.log_probs
        proofs: list[Certificate | None] = [None] * len(labels)
        if by.needs_best_only and by.source == "sets":
            proofs = list_certificates(labels, candidates)
        accepted: list[bool | None] = [None] * len(labels)
        found, trusted = candidates, log_probs
        if (scaling := fitted.scaling_of(options.rule, by.source)) is not None:
            found, trusted = scaling.calibrate(candidates, labels, log_probs)
        if options.rule in fitted.acceptance:
            accepted = fitted.acceptance[options.rule].accepts(np.exp(trusted)).tolist()
        if options.calibrated:
            candidates, log_probs = found, trusted
        probs = search.label_probs(by.source, len(self.labels))
        label_probs, is_accepted = self._trust_labels(probs, labels, options.calibrated)
        shown: Sequence[dict[str, float] | None] = [None] * len(labels)
        if fitted.shown is not None and fitted.shown.threshold is not None and probs is not None:
            columns = list_columns(probs >= fitted.shown.threshold)
            of_shown, _ = self._trust_labels(probs, columns, options.calibrated)
            assert of_shown is not None
            named = map(self._name_probs, columns, of_shown)
            shown = [dict(sorted(each.items(), key=lambda pair: -pair[1])) for each in named]
        for row, own in enumerate(labels):
            predicted = name_labels(self.labels, own)
            others = (
                name_set(self.labels, candidates.labels[row, rank], candidates.log_probs[row, rank])
                for rank in np.flatnonzero(chosen.choice.fits[row])
                if candidates.log_probs[row, rank] > -np.inf
            )
            # The predicted set may be any candidate, or none of them.
            alternatives = (each for each in others if each.labels != predicted)
            named_probs = accepted_labels = None
            if label_probs is not None:
                named_probs = self._name_probs(own, label_probs[row])
            if is_accepted is not None:
                accepted_labels = name_labels(self.labels, np.where(is_accepted[row], own, -1))
            yield Prediction(
                predicted,
                to_probability(log_probs[row]),
                tuple(islice(alternatives, options.top - 1)),
                accepted[row],
                proofs[row],
                named_probs,
                accepted_labels,
                shown[row],
                (IMPOSSIBLE,) if log_probs[row] == -np.inf else (),
            )

    def _name_probs(self, labels: Ids, probs: Floats32) -> dict[str, float]:
        """Name the labels of a set (S,) with their probabilities."""
        # With six decimals: single precision has no more.
        rounded = [round(float(each), 6) for each in probs]
        return dict(zip(name_labels(self.labels, labels), rounded, strict=False))

    def _trust_labels(
        self, probs: Floats32 | None, sets: Ids, calibrated: bool
    ) -> tuple[Floats32 | None, Bools | None]:
        """Return the probabilities of the labels of sets (n, S), and which labels are accepted.

        Each is None if it is not known. `probs` are the model's own, (n, L).
        """
        if probs is None or not len(self.labels):  # all training documents may be without labels
            return None, None
        own = np.take_along_axis(probs, np.maximum(sets, 0), axis=1)
        trusted, acceptance = self.fitted.label_probs(own, sets), self.fitted.label_acceptance
        is_accepted = None if acceptance is None else acceptance.accepts(trusted, sets)
        return trusted if calibrated else own, is_accepted

    def label_marginals(
        self, tokens: Ragged, candidates: SetCandidates, *, calibrated: bool = True
    ) -> Marginals:
        """Return p(label | document), given candidates that stand for the whole distribution."""
        many = candidates.for_rule(LABEL_RULE)
        probs = self.system.for_rule(LABEL_RULE).marginals(tokens, many)
        probs = self.fitted.label_probs(probs) if calibrated else probs
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
        features: Features = None,
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
        documents = pair_features(texts, features)
        known = pair_known(present, absent, len(documents))
        return list(self.complete_stream(documents, known, top))

    def complete_stream(
        self, documents: Iterable[Document], known: Iterable[KnownLabels], top: int = 3
    ) -> Iterator[Completion]:
        """Complete the labels of each (text, features); reads one batch at a time."""
        check_top(top)
        rows_left, n_before = iter(known), 0
        for texts, tokens in encode_batches(self.encoder, documents, self.batch_size):
            rows = list(islice(rows_left, len(tokens)))
            if len(rows) < len(tokens):
                raise DataError("Known labels are given for fewer documents than there are.")
            found = complete_tokens(self, tokens, rows, top, n_before)
            yield from map(add_notes, found, note_texts(self.encoder, texts, tokens))
            n_before += len(rows)

    def check_known(self, known: KnownLabels) -> None:
        """Raise DataError if known labels do not fit the labels of the model."""
        if (problem := problem_with_known(self, known)) is not None:
            raise DataError(problem)

    def explain(
        self,
        text: str,
        features: Sequence[str] = (),
        top: int = 12,
        rule: str | None = None,
        labels: Collection[str] | None = None,
        limits: Limits | None = None,
    ) -> Explanation:
        """Show how the model tags a text: the words for each label, sequences, sets, steps.

        Args:
            text: the document.
            features: its features.
            top: how many sequences and sets to list; the beam width limits the sequences.
            rule: the prediction rule; the model's own if not given.
            labels: the set to explain instead of the predicted one, in any order. It excludes
                a rule and limits.
            limits: what the predicted set must satisfy.
        """
        from setrnn.tagging.explain import explain_text

        check_top(top)
        return explain_text(self, text, features, top, rule, labels, limits)

    def predict_proba(self, texts: Sequence[str], features: Features = None) -> Floats32:
        """Return p(label | text), texts x labels, in the order of `self.labels.names`.

        The probabilities are calibrated if the model has a calibration.
        """
        return self.marginals(texts, features).probs

    def marginals(
        self, texts: Sequence[str], features: Features = None, *, calibrated: bool = True
    ) -> Marginals:
        """Return p(label | text), and the probability of the sets that were not found."""
        probs, missing = [np.zeros((0, len(self.labels)), np.float32)], [np.zeros(0)]
        documents = pair_features(texts, features)
        for _, tokens in encode_batches(self.encoder, documents, self.batch_size):
            candidates = self.system.candidates(tokens, count_candidates())
            found = self.label_marginals(tokens, candidates, calibrated=calibrated)
            probs.append(found.probs)
            missing.append(found.missing_mass)
        return Marginals(np.concatenate(probs), np.concatenate(missing))


def count_by_source(options: Iterable[TagOptions]) -> dict[str, int]:
    """Return how many candidates, by source, serve several rules and label probabilities."""
    n_sets = {"sets": count_candidates()}  # for label probabilities: sequences give none
    for each in options:
        source = find_rule(each.rule).source
        n_sets[source] = max(each.n_sets, n_sets.get(source, 0))
    return n_sets


def check_tagger(tagger: object) -> None:
    """Raise ConfigError unless the argument is a Tagger."""
    if not isinstance(tagger, Tagger):
        raise ConfigError(f"A Tagger is needed, got {tagger!r:.60}. Write setrnn.load(FOLDER).")


def load(folder: str | Path, device: str = "auto") -> Tagger:
    """Load a model onto a device: cpu, cuda, mps, or auto for a GPU of NVIDIA if any.

    The model is in a folder or on the Hugging Face hub: `hub:OWNER/NAME`, or
    `hub:OWNER/NAME@REVISION` for one branch, tag or commit. Nothing in it is run or unpickled.

    Example:
        >>> import setrnn
        >>> setrnn.train("newsroom", "br").save("model")
        >>> tagger = setrnn.load("model")
        >>> tagger.tag(["The ski race was cancelled because of the storm."])[0].labels
        ('weather', 'storm')
    """
    check_device_name(device)  # classical systems never ask for it
    return Tagger.load(folder, device)


def open_model(model: str | Path | Tagger, device: str) -> tuple[str, Tagger]:
    """Return the name of a model, which is a tagger or in a folder, and its tagger."""
    if isinstance(model, Tagger):
        return model.method, model
    return name_place(model), load(model, device)
