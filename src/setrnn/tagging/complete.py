"""Complete the labels of documents of which some are known to be right or wrong."""

# n documents, L labels

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from setrnn.data.example import KnownLabels
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError, nearest_name
from setrnn.systems.closure import close_candidates
from setrnn.systems.known import Known, given_known, known_log_prob
from setrnn.systems.rules import MANY_COMPLETIONS
from setrnn.tagging.prediction import Completion, name_set

if TYPE_CHECKING:
    from setrnn.tagging.trained_model import TrainedModel


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
    n_present, max_labels = len(set(present)), tagger.max_labels
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
