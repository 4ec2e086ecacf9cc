"""What a tagger answers for one document: a prediction, or the completion of known labels."""

# n documents, K candidates, L labels, S labels of the largest set

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from setrnn.data.example import KnownLabels
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.data.text.notes import is_unread
from setrnn.errors import DataError, nearest_name
from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    ScoredSet,
    SetCandidates,
    to_probability,
)
from setrnn.systems.closure import Closure
from setrnn.systems.known import Known, given_known, known_log_prob
from setrnn.systems.rules import count_completions
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.closed_sets import keep_closed
from setrnn.systems.system import System
from setrnn.tagging.html import write_prediction

IMPOSSIBLE = (
    "The probability of this set is 0: the model knows only the sets of training documents. The "
    "rule chose it by the probabilities of its labels."
)


@dataclass(frozen=True)
class Certificate:
    """What the search proves about a predicted set."""

    proved: bool  # no other set is more probable
    pruned_mass: float  # the probability of everything that was pruned


@dataclass(frozen=True)
class Prediction:
    """The predicted label set of a document, and the most probable other sets.

    Example:
        >>> import setrnn
        >>> prediction = setrnn.Prediction(("sport", "storm"), 0.62)
        >>> prediction.as_dict()
        {'labels': ['sport', 'storm'], 'probability': 0.62, 'alternatives': []}
    """

    labels: tuple[str, ...]
    probability: float
    alternatives: tuple[ScoredSet, ...] = ()
    accepted: bool | None = None  # None if the model has no acceptance for the rule
    certificate: Certificate | None = None  # of set-rnn-exact, if the set is its most probable
    # p(label | document) of each of `labels`; None if the search was only for the best sets.
    label_probabilities: Mapping[str, float] | None = None
    accepted_labels: tuple[str, ...] | None = None  # None if the model has no acceptance of labels
    notes: tuple[str, ...] = ()  # what the model did not read, or why its answer is odd

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: a row of `setrnn predict`, without its id."""
        values = _set_values(self)
        if self.accepted is not None:
            values["accepted"] = self.accepted
        if self.certificate is not None:
            values["certificate"] = asdict(self.certificate)
        if self.label_probabilities is not None:
            values["label_probabilities"] = dict(self.label_probabilities)
        if self.accepted_labels is not None:
            values["accepted_labels"] = list(self.accepted_labels)
        return values | _notes_value(self)

    def _repr_html_(self) -> str:
        return write_prediction(self)


@dataclass(frozen=True)
class LabelProbs:
    """What is known of the labels of predicted sets (n, S), padded with -1."""

    probs: Floats32  # (n, S)
    is_accepted: Bools | None = None  # (n, S)


@dataclass(frozen=True)
class Marginals:
    """The probability of each label, p(label | text)."""

    probs: Floats32  # (n, L) in the order of the model's labels
    # (n,) the probability of the sets that were not found: their labels are estimated
    missing_mass: Floats


@dataclass(frozen=True)
class Completion:
    """The most probable set that agrees with the known labels of a document.

    Probabilities are p(set | x, known) and p(label | x, known), over the sets that were found. They
    are the model's own: a calibration does not apply.

    Example:
        >>> import setrnn
        >>> found = setrnn.Completion(
        ...     present=("sport",), absent=(), labels=("sport", "storm"), probability=0.8,
        ...     alternatives=(), suggestions=(("storm", 0.8),), known_probability=0.9,
        ... )
        >>> found.added, found.suggestion
        (('storm',), 'storm')
    """

    present: tuple[str, ...]
    absent: tuple[str, ...]
    labels: tuple[str, ...]  # the whole set, with the present labels
    probability: float
    alternatives: tuple[ScoredSet, ...]
    # The labels that are not known and occur in a set found, in descending order of probability.
    suggestions: tuple[tuple[str, float], ...]
    # p(known | x), small if the known labels surprise the model. A lower bound: the sum over the
    # sets found.
    known_probability: float
    notes: tuple[str, ...] = ()  # what the model did not read of the text, in words

    @property
    def added(self) -> tuple[str, ...]:
        """The labels of the set that were not known."""
        return tuple(label for label in self.labels if label not in self.present)

    @property
    def suggestion(self) -> str | None:
        """The most probable label that is not known; None if there is none."""
        return self.suggestions[0][0] if self.suggestions else None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: a row of `setrnn predict`, without its id."""
        return _set_values(self) | {
            "added": list(self.added),
            "suggestion": self.suggestion,
            "known_probability": self.known_probability,
            **_notes_value(self),
        }


Found = TypeVar("Found", Prediction, Completion)


def _set_values(found: Prediction | Completion) -> dict[str, Any]:
    return {
        "labels": list(found.labels),
        "probability": found.probability,
        "alternatives": [
            {"labels": list(each.labels), "probability": each.probability}
            for each in found.alternatives
        ],
    }


def _notes_value(found: Prediction | Completion) -> dict[str, Any]:
    return {"notes": list(found.notes)} if found.notes else {}


def add_notes(found: Found, notes: tuple[str, ...]) -> Found:
    """Return what was found with notes on the text; nothing is accepted that was not read."""
    if not notes:
        return found
    changes: dict[str, Any] = {"notes": (*notes, *found.notes)}
    if isinstance(found, Prediction) and is_unread(notes):
        changes["accepted"] = None if found.accepted is None else False
        changes["accepted_labels"] = None if found.accepted_labels is None else ()
    return replace(found, **changes)


def list_certificates(labels: Ids, candidates: SetCandidates | None) -> list[Certificate | None]:
    """Return the certificate of each predicted set (n, S) that is the first candidate."""
    if candidates is None or candidates.certificates is None:
        return [None] * len(labels)
    found = candidates.certificates
    is_first = candidates.ranks(labels) == 0
    return [
        Certificate(bool(proved), float(pruned)) if first else None
        for first, proved, pruned in zip(is_first, found.is_proved, found.pruned, strict=True)
    ]


def name_predictions(
    labels: LabelVocabulary,
    choice: Choice,
    sets: Ids,
    log_probs: Floats,
    top: int,
    accepted: Sequence[bool | None],
    certificates: Sequence[Certificate | None],
    of_labels: LabelProbs | None = None,
) -> Iterator[Prediction]:
    """Yield a prediction per document: its set (n, S), and its best alternatives."""
    candidates = choice.candidates
    probs, is_accepted = (None, None) if of_labels is None else vars(of_labels).values()
    for document, row in enumerate(sets):
        predicted = name_labels(labels, row)
        others = (
            ScoredSet(
                name_labels(labels, candidates.labels[document, rank]),
                to_probability(candidates.log_probs[document, rank]),
            )
            for rank in np.flatnonzero(choice.fits[document])
            if candidates.log_probs[document, rank] > -np.inf
        )
        # The predicted set may be any candidate, or none of them.
        alternatives = islice((each for each in others if each.labels != predicted), top - 1)
        yield Prediction(
            predicted,
            to_probability(log_probs[document]),
            tuple(alternatives),
            accepted[document],
            certificates[document],
            None if probs is None else _name_probs(predicted, probs[document]),
            None
            if is_accepted is None
            else name_labels(labels, np.where(is_accepted[document], row, -1)),
            (IMPOSSIBLE,) if log_probs[document] == -np.inf else (),
        )


def _name_probs(names: tuple[str, ...], probs: Floats32) -> dict[str, float]:
    """Return the probability of each label, with six decimals: single precision has no more."""
    return {name: round(float(each), 6) for name, each in zip(names, probs, strict=False)}


def problem_with_known(
    labels: LabelVocabulary,
    present: Collection[str],
    absent: Collection[str],
    max_labels: int | None = None,
    closure: Closure | None = None,
) -> str | None:
    """Return what is wrong with known labels and how to correct it, or None."""
    for name in (*present, *absent):
        if name not in labels.index:
            nearest = nearest_name(name, labels.names) if isinstance(name, str) else ""
            advice = nearest if nearest.startswith("Did") else "Its labels.json lists those it has."
            return f"the model has no label {reprlib.repr(name)}. {advice}"
    both = [name for name in present if name in absent]
    if both:
        return f"{reprlib.repr(both[0])} is both present and absent. Remove it from one."
    if closure is not None:
        for name in present:
            above = labels.sets([closure.ids_above(labels.index[name])])[0]
            if missing := [each for each in above if each in absent]:
                return (
                    f"{reprlib.repr(name)} is present, but {reprlib.repr(missing[0])}, above it in "
                    "the hierarchy, is absent. Remove one of them."
                )
            present = [*present, *above]
    if max_labels is not None and len(set(present)) > max_labels:
        return (
            f"{len(set(present))} labels are present, but the model's sets have at most "
            f"{max_labels}. Give fewer, or train with a larger model.max_labels."
        )
    return None


def encode_known(
    labels: LabelVocabulary,
    rows: Sequence[KnownLabels],
    max_labels: int | None = None,
    n_before: int = 0,
    closure: Closure | None = None,
) -> Known:
    """Return the ids of known labels; `n_before` texts precede the first, for error messages.

    If sets must be closed, a present label brings those above it, an absent one those below it.
    """
    for number, row in enumerate(rows, start=n_before):
        problem = problem_with_known(labels, row.present, row.absent, max_labels, closure)
        if problem is not None:
            raise DataError(f"Text {number}: {problem}")
    index = labels.index
    present = [[index[name] for name in row.present] for row in rows]
    absent = [[index[name] for name in row.absent] for row in rows]
    if closure is not None:
        present = [_add(closure.ids_above, row) for row in present]
        absent = [_add(lambda label: closure.below[label], row) for row in absent]
    return Known.of(present, absent)


def _add(find: Callable[[int], Iterable[int]], row: Iterable[int]) -> list[int]:
    """Return labels with those that each brings."""
    return [*dict.fromkeys(each for label in row for each in (label, *find(label)))]


def complete_tokens(
    system: System,
    labels: LabelVocabulary,
    tokens: Ragged,
    rows: Sequence[KnownLabels],
    known: Known,
    top: int,
    closure: Closure | None = None,
) -> Iterator[Completion]:
    """Complete a batch of documents; `known` has the ids of the labels that `rows` names.

    With a closure, `known` and the sets that are found are closed.
    """
    found = system.candidates(tokens, count_completions(top), known=known)
    if closure is not None:
        found = keep_closed(
            found, closure, lambda rows, sets: system.set_log_probs(tokens.take(rows), sets)
        )
    given = given_known(found)
    log_probs, mass = given.log_probs, np.exp(known_log_prob(found))
    is_known = known.is_present(len(labels)) | known.is_absent(len(labels))
    open_marginals = np.where(is_known, 0, given.marginals(len(labels)))  # (n, L)
    ranked = np.argsort(-open_marginals, axis=1, kind="stable")
    for document, row in enumerate(rows):
        sets = [
            ScoredSet(name_labels(labels, given.labels[document, rank]), to_probability(log_prob))
            for rank, log_prob in enumerate(log_probs[document, :top])
            if rank == 0 or log_prob > -np.inf
        ]
        chances = open_marginals[document, ranked[document]]
        suggested = ranked[document, : int((chances > 0).sum())]
        yield Completion(
            present=row.present,
            absent=row.absent,
            labels=sets[0].labels,
            probability=sets[0].probability,
            alternatives=tuple(sets[1:]),
            suggestions=tuple(
                (labels.names[label], float(open_marginals[document, label])) for label in suggested
            ),
            known_probability=float(mass[document]),
        )


def name_labels(labels: LabelVocabulary, row: Ids) -> tuple[str, ...]:
    """Return the names of a set's ids, padded with -1."""
    return tuple(labels.names[label] for label in row if label >= 0)
