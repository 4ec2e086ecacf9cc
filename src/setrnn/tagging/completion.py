"""Completion: the rest of a document's labels, when some are known to be right or wrong."""

# n documents, K candidates, L labels

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setrnn.data.example import KnownLabels
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError, nearest_name
from setrnn.systems.known import Known, given_known, known_log_prob
from setrnn.systems.scored_set import ScoredSet
from setrnn.systems.system import System

N_SETS = 64  # to share p(known | x) among; networks and pcc give what their beams hold


@dataclass(frozen=True)
class Completion:
    """The most probable set that fits what is known of a document.

    Probabilities are p(set | x, known) and p(label | x, known), over the sets that were found.
    """

    present: tuple[str, ...]
    absent: tuple[str, ...]
    labels: tuple[str, ...]  # the whole set, the present ones included
    probability: float
    alternatives: tuple[ScoredSet, ...]
    # The labels not known yet that some set found has, by falling probability.
    suggestions: tuple[tuple[str, float], ...]
    # p(known | x), before anything was known: small where the known labels surprise the model.
    # A lower bound: the sum over the sets found.
    known_probability: float

    @property
    def added(self) -> tuple[str, ...]:
        """The labels of the set that were not known."""
        return tuple(label for label in self.labels if label not in self.present)

    @property
    def suggestion(self) -> str | None:
        """The label not known yet that is the most probable; None where there is none."""
        return self.suggestions[0][0] if self.suggestions else None


def known_of_each(
    present: Sequence[Collection[str]], absent: Sequence[Collection[str]], n_texts: int
) -> list[KnownLabels]:
    """Pair the present and the absent labels of each text; an empty list means none at all."""
    sides = []
    for name, rows in (("present", present), ("absent", absent)):
        rows = rows or [()] * n_texts
        if isinstance(rows, str | set | frozenset) or any(isinstance(row, str) for row in rows):
            raise DataError(
                f"'{name}' must be a collection of labels for each text, got strings. "
                "Write ['...'] for each."
            )
        if len(rows) != n_texts:
            raise DataError(f"There are {n_texts} texts but {len(rows)} rows of '{name}' labels.")
        sides.append([tuple(dict.fromkeys(row or ())) for row in rows])
    return [KnownLabels(*each) for each in zip(*sides, strict=True)]


def problem_with_known(
    labels: LabelVocabulary,
    present: Collection[str],
    absent: Collection[str],
    max_labels: int | None = None,
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
    if max_labels is not None and len(set(present)) > max_labels:
        return (
            f"{len(set(present))} labels are present, but the model's sets have at most "
            f"{max_labels}. Give fewer, or train with a larger model.max_labels."
        )
    return None


def check_known(labels: LabelVocabulary, known: KnownLabels, max_labels: int | None = None) -> None:
    """Raise DataError if known labels do not fit the labels of a model."""
    problem = problem_with_known(labels, known.present, known.absent, max_labels)
    if problem is not None:
        raise DataError(problem)


def encode_known(
    labels: LabelVocabulary,
    rows: Sequence[KnownLabels],
    max_labels: int | None = None,
    n_before: int = 0,
) -> Known:
    """Return the ids of known labels, or say which text has one that cannot be."""
    for number, row in enumerate(rows, start=n_before):
        problem = problem_with_known(labels, row.present, row.absent, max_labels)
        if problem is not None:
            raise DataError(f"Text {number}: {problem}")
    index = labels.index
    return Known.of(
        [[index[name] for name in row.present] for row in rows],
        [[index[name] for name in row.absent] for row in rows],
    )


def complete_tokens(
    system: System,
    labels: LabelVocabulary,
    tokens: Ragged,
    rows: Sequence[KnownLabels],
    known: Known,
    top: int,
) -> Iterator[Completion]:
    """Complete a batch of documents, of which `known` has the ids that `rows` names."""
    found = system.candidates(tokens, max(top, N_SETS), known=known)
    given = given_known(found)
    log_probs, mass = given.log_probs, np.exp(known_log_prob(found))
    is_known = known.is_present(len(labels)) | known.is_absent(len(labels))
    open_marginals = np.where(is_known, 0, given.marginals(len(labels)))  # (n, L)
    ranked = np.argsort(-open_marginals, axis=1, kind="stable")
    for document, row in enumerate(rows):
        sets = [
            ScoredSet(_names(labels, given.labels[document, rank]), float(np.exp(log_prob)))
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


def _names(labels: LabelVocabulary, row: npt.NDArray[np.int32]) -> tuple[str, ...]:
    return tuple(labels.names[label] for label in row if label >= 0)
