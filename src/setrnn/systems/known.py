"""Labels known before a document is tagged, as ids: right ones and wrong ones."""

# n documents, R labels known to be right, A known to be wrong, K candidates, L labels

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special is imported where it is first used

from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import Bools, Floats, Ids, Ints, SetCandidates, pack_labels, widen


@dataclass(frozen=True)
class Known:
    """For each document, the labels that its set must contain and those it must not contain.

    By their names, the known labels of one document are `setrnn.data.example.KnownLabels`; what
    contradicts itself or the model is refused before names become ids.

    Example: of two documents, the first has label 3 and not label 1.

        >>> known = Known.of(present=[[3], []], absent=[[1], []])
        >>> len(known), known.is_present(n_labels=4)[0].tolist()
        (2, [False, False, False, True])
    """

    present: Ids  # (n, R) ids, padded with -1
    absent: Ids  # (n, A) ids, padded with -1

    @classmethod
    def of(cls, present: Sequence[Sequence[int]], absent: Sequence[Sequence[int]]) -> Known:
        """Build from one list of ids per document."""
        return cls(*(Ragged.from_lists(rows).padded() for rows in (present, absent)))

    def __len__(self) -> int:
        return len(self.present)

    @property
    def is_nothing(self) -> bool:
        """Whether no label of any document is known."""
        return not ((self.present >= 0).any() or (self.absent >= 0).any())

    def take(self, rows: slice | Ints) -> Known:
        """Return what is known of some of the documents."""
        return Known(self.present[rows], self.absent[rows])

    def is_present(self, n_labels: int) -> Bools:
        """Mark the labels that each set must contain: (n, L)."""
        return _mark(self.present, n_labels)

    def is_absent(self, n_labels: int) -> Bools:
        """Mark the labels that no set may contain: (n, L)."""
        return _mark(self.absent, n_labels)


def make_completions(found: SetCandidates, known: Known) -> SetCandidates:
    """Return the sets found that fit what is known; sets of log p -inf become empty.

    If a document has no such set, because the model gives probability 0 to all that fit, its
    first candidate is the set of its present labels, with log p -inf.
    """
    is_found = found.log_probs > -np.inf
    R = known.present.shape[1]
    labels = np.where(is_found[:, :, None], widen(found.labels, R), -1).astype(np.int32)
    is_none = ~is_found.any(1)
    labels[is_none, 0, :R] = known.present[is_none]
    return SetCandidates(pack_labels(labels), found.log_probs)


def given_known(candidates: SetCandidates) -> SetCandidates:
    """Return the same sets with log p(set | x, known): each set's share of the candidates' sum.

    If some sets that fit were not found, the shares are too large. A document without candidates
    keeps -inf.
    """
    log_mass = known_log_prob(candidates)[:, None]
    log_probs = candidates.log_probs - np.where(log_mass > -np.inf, log_mass, 0.0)
    return SetCandidates(candidates.labels, log_probs)


def known_log_prob(candidates: SetCandidates) -> Floats:
    """Return log p(known | x), (n,): the sum over the candidates.

    It is a lower bound, and exact if all sets that fit were found.
    """
    return np.asarray(np.minimum(scipy.special.logsumexp(candidates.log_probs, axis=1), 0.0))


def _mark(labels: Ids, n_labels: int) -> Bools:
    is_known = np.zeros((len(labels), n_labels + 1), dtype=bool)
    np.put_along_axis(is_known, labels, True, axis=1)  # -1 falls in the last column
    return is_known[:, :-1]
