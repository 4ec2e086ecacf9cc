"""What a tagger answers: the prediction of a document, or the completion of its known labels.

A completion is the most probable set that agrees with the labels known to be right or wrong.
"""

# n documents, L labels, S labels of the largest set

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from setrnn.data.example import KnownLabels
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.data.text.notes import is_unread
from setrnn.errors import ConfigError, DataError, nearest_name
from setrnn.systems.candidates import (
    Floats,
    Floats32,
    Ids,
    ScoredSet,
    SetCandidates,
    to_probability,
)
from setrnn.systems.closure import close_candidates
from setrnn.systems.known import Known, given_known, known_log_prob
from setrnn.systems.rules import MANY_COMPLETIONS

if TYPE_CHECKING:
    import pandas as pd

    from setrnn.tagging.trained_model import TrainedModel

MAX_ROWS = 20  # in a notebook
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
    # The labels, with p(label | document), that contain as many of the true ones in the mean as
    # `setrnn calibrate --target-recall` asked for; None without.
    shown_labels: Mapping[str, float] | None = None
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
        if self.shown_labels is not None:
            values["shown_labels"] = dict(self.shown_labels)
        return values | _notes_value(self)


class Predictions(list[Prediction]):
    """A list of predictions, one per text.

    Example:
        >>> import setrnn
        >>> found = setrnn.Predictions([setrnn.Prediction(("sport", "storm"), 0.62)])
        >>> len(found), found[0].labels
        (1, ('sport', 'storm'))
    """

    def __init__(self, found: Iterable[Prediction] = (), texts: object = None) -> None:
        super().__init__(found)
        # Of a pandas Series; a list has a method of this name.
        self.rows = texts.index if hasattr(texts, "iloc") and hasattr(texts, "index") else None

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame, one row per text.

        Its columns are those of `Prediction.as_dict`: `labels`, `probability`, `alternatives` and,
        where there is something to say, `accepted`, `label_probabilities`, `accepted_labels`. Its
        index is that of the texts, if they were a pandas Series.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ConfigError("A DataFrame needs pandas: pip install pandas") from None
        rows = [each.as_dict() for each in self]
        names = list(dict.fromkeys(name for row in rows for name in row)) or [
            "labels",
            "probability",
        ]
        columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
        return pd.DataFrame(columns, index=self.rows)

    def _repr_html_(self) -> str | None:
        """Show a table in a notebook, if pandas is there."""
        with suppress(ConfigError):
            return str(self.to_frame().to_html(max_rows=MAX_ROWS))
        return None


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
    """Add notes on the text to a prediction; a text that was not read is not accepted."""
    if not notes:
        return found
    changes: dict[str, Any] = {"notes": (*notes, *found.notes)}
    if isinstance(found, Prediction) and is_unread(notes):
        changes["accepted"] = None if found.accepted is None else False
        changes["accepted_labels"] = None if found.accepted_labels is None else ()
    return replace(found, **changes)


def list_certificates(labels: Ids, candidates: SetCandidates) -> list[Certificate | None]:
    """Return the certificate of each predicted set (n, S) that is the first candidate."""
    if candidates.is_proved is None or candidates.pruned is None:
        return [None] * len(labels)
    parts = zip(candidates.ranks(labels) == 0, candidates.is_proved, candidates.pruned, strict=True)
    return [
        Certificate(bool(proved), float(pruned)) if first else None
        for first, proved, pruned in parts
    ]


def name_labels(labels: LabelVocabulary, row: Ids | Sequence[int]) -> tuple[str, ...]:
    """Return the names of a set's ids, padded with -1."""
    return tuple(labels.names[label] for label in row if label >= 0)


def name_set(labels: LabelVocabulary, row: Ids, log_prob: float) -> ScoredSet:
    """Return a set of ids, padded with -1, with its probability."""
    return ScoredSet(name_labels(labels, row), to_probability(log_prob))


def problem_with_known(tagger: TrainedModel, known: KnownLabels) -> str | None:
    """Return what is wrong with the known labels of a document and how to correct it, or None."""
    labels, present, absent = tagger.labels, known.present, known.absent
    for name in (*present, *absent):
        if name not in labels.index:
            nearest = nearest_name(name, labels.names) if isinstance(name, str) else ""
            advice = nearest if nearest.startswith("Did") else "Its labels.json lists those it has."
            return f"the model has no label {reprlib.repr(name)}. {advice}"
    both = [name for name in present if name in absent]
    if both:
        return f"{reprlib.repr(both[0])} is both present and absent. Remove it from one."
    if (closure := tagger.kept_closure) is not None:
        for name in known.present:
            above = labels.sets([closure.ids_above(labels.index[name])])[0]
            if missing := [each for each in above if each in absent]:
                return (
                    f"{reprlib.repr(name)} is present, but {reprlib.repr(missing[0])}, above it in "
                    "the hierarchy, is absent. Remove one of them."
                )
            present = (*present, *above)
    n_present, max_labels = len(set(present)), tagger.system.max_labels
    if max_labels is not None and n_present > max_labels:
        return (
            f"{n_present} labels are present, but the model's sets have at most {max_labels}. "
            "Give fewer, or train with a larger model.max_labels."
        )
    return None


def encode_known(tagger: TrainedModel, rows: Sequence[KnownLabels], n_before: int = 0) -> Known:
    """Return the ids of known labels; `n_before` texts precede the first, for error messages.

    If sets must be closed, present labels add their ancestors, absent ones their descendants.
    """
    for number, row in enumerate(rows, start=n_before):
        if (problem := problem_with_known(tagger, row)) is not None:
            raise DataError(f"Text {number}: {problem}")
    index, closure = tagger.labels.index, tagger.kept_closure
    present = [[index[name] for name in row.present] for row in rows]
    absent = [[index[name] for name in row.absent] for row in rows]
    if closure is not None:
        present = [_add(closure.ids_above, row) for row in present]
        absent = [_add(lambda label: closure.below[label], row) for row in absent]
    return Known.of(present, absent)


def _add(find: Callable[[int], Iterable[int]], row: Iterable[int]) -> list[int]:
    """Return labels, each followed by those that `find` adds for it, without repeats."""
    return [*dict.fromkeys(each for label in row for each in (label, *find(label)))]


def complete_tokens(
    tagger: TrainedModel, tokens: Ragged, rows: Sequence[KnownLabels], top: int, n_before: int = 0
) -> Iterator[Completion]:
    """Complete a batch of documents by the most probable sets that agree with known labels."""
    system, labels, known = tagger.system, tagger.labels, encode_known(tagger, rows, n_before)
    n_sets = max(top, MANY_COMPLETIONS)
    found = system.candidates(tokens, n_sets, known=None if known.is_nothing else known)
    if (closure := tagger.kept_closure) is not None:
        found = close_candidates(found, closure, partial(system.set_log_probs, tokens))
    given = given_known(found)
    log_probs, mass = given.log_probs, np.exp(known_log_prob(found))
    is_known = known.is_present(len(labels)) | known.is_absent(len(labels))
    open_marginals = np.where(is_known, 0, given.marginals(len(labels)))  # (n, L)
    ranked = np.argsort(-open_marginals, axis=1, kind="stable")
    for document, row in enumerate(rows):
        sets = [
            name_set(labels, given.labels[document, rank], log_prob)
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
