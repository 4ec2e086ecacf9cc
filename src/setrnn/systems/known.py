"""What is known of documents beforehand: labels that are right, and labels that are wrong."""

# n documents, R labels known to be right at most, A known to be wrong, K candidates, L labels

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError, DataError
from setrnn.systems.candidates import SetCandidates, pack_labels


@dataclass(frozen=True)
class Known:
    """For each document, the labels its set must contain and those it must not."""

    present: npt.NDArray[np.int32]  # (n, R) ids; -1 fills up
    absent: npt.NDArray[np.int32]  # (n, A) ids; -1 fills up

    def __post_init__(self) -> None:
        """Refuse a label that is known to be both right and wrong."""
        if len(self.present) != len(self.absent):
            raise DataError(
                f"Present labels are given for {len(self.present):,} documents, absent ones for "
                f"{len(self.absent):,}. Give a row for each document."
            )
        is_both = (self.present[:, :, None] == self.absent[:, None]).any(2) & (self.present >= 0)
        if is_both.any():
            document, place = (int(each[0]) for each in np.nonzero(is_both))
            raise DataError(
                f"Document {document}: label {self.present[document, place]} is known to be "
                "present and to be absent. Remove it from one."
            )

    @classmethod
    def of(cls, present: Sequence[Sequence[int]], absent: Sequence[Sequence[int]]) -> Known:
        """Build from lists of ids, one a document."""
        return cls(*(Ragged.from_lists(rows).padded() for rows in (present, absent)))

    @classmethod
    def nothing(cls, n_documents: int) -> Known:
        """Know nothing of so many documents."""
        return cls.of([()] * n_documents, [()] * n_documents)

    def __len__(self) -> int:
        return len(self.present)

    @property
    def is_nothing(self) -> bool:
        """Whether no label of any document is known."""
        return not ((self.present >= 0).any() or (self.absent >= 0).any())

    def rows(self, rows: slice | npt.NDArray[np.int64]) -> Known:
        """Return what is known of some of the documents."""
        return Known(self.present[rows], self.absent[rows])

    def is_present(self, n_labels: int) -> npt.NDArray[np.bool_]:
        """Mark the labels that each set must contain: (n, L)."""
        return _marked(self.present, n_labels)

    def is_absent(self, n_labels: int) -> npt.NDArray[np.bool_]:
        """Mark the labels that no set may contain: (n, L)."""
        return _marked(self.absent, n_labels)

    def check_sizes(self, max_labels: int) -> None:
        """Refuse more present labels than a set of the model may have."""
        sizes = (self.present >= 0).sum(1)
        if (sizes > max_labels).any():
            document = int(np.argmax(sizes > max_labels))
            raise DataError(
                f"Document {document}: {sizes[document]} labels are known to be present, but the "
                f"model's sets have at most {max_labels}. Give fewer, or train with a larger "
                "model.max_labels."
            )


def refuse_sequences(source: str) -> None:
    """Refuse to look for sequences where there are none."""
    if source != "sets":
        raise ConfigError(
            "Rule 'sequence' needs a system that emits labels one by one: use rule 'set', or "
            "train a recurrent system."
        )


def something_known(known: Known | None, source: str) -> Known | None:
    """Return what is known, or None for nothing; refuse to complete anything but sets."""
    if known is None or known.is_nothing:
        return None
    if source != "sets":
        raise ConfigError(
            "Rule 'sequence' knows no labels beforehand: only sets are completed. Use rule 'set'."
        )
    return known


def completed(
    labels: npt.NDArray[np.int32], log_probs: npt.NDArray[np.float64], known: Known
) -> SetCandidates:
    """Make candidates of the sets (n, K, S) that fit what is known, and of log p -inf for none.

    Where a document has none, because the model gives all that fit probability 0, its first
    candidate is the present labels alone, of log p -inf.
    """
    is_found = log_probs > -np.inf
    n, K, S = labels.shape
    room = max(known.present.shape[1] - S, 0)
    filled = np.pad(labels, ((0, 0), (0, 0), (0, room)), constant_values=-1)
    filled = np.where(is_found[:, :, None], filled, -1).astype(np.int32)
    is_none = ~is_found.any(1)
    filled[is_none, 0, : known.present.shape[1]] = known.present[is_none]
    return SetCandidates(pack_labels(filled), log_probs)


def given_known(candidates: SetCandidates) -> SetCandidates:
    """Return the same sets with log p(set | x, known), as shares of what the candidates have.

    The sets that were not found have no share: with some of them missing, too much is given to
    those that were found. All stays -inf where there is none.
    """
    log_mass = known_log_prob(candidates)[:, None]
    log_probs = candidates.log_probs - np.where(log_mass > -np.inf, log_mass, 0.0)
    return SetCandidates(candidates.labels, log_probs)


def known_log_prob(candidates: SetCandidates) -> npt.NDArray[np.float64]:
    """Sum the candidates' probabilities: log p(known | x) (n,), a lower bound.

    Exact where all sets that fit were found.
    """
    return np.asarray(np.minimum(logsumexp(candidates.log_probs, axis=1), 0.0))


def _marked(labels: npt.NDArray[np.int32], n_labels: int) -> npt.NDArray[np.bool_]:
    is_known = np.zeros((len(labels), n_labels + 1), dtype=bool)
    np.put_along_axis(is_known, labels, True, axis=1)  # -1 falls in the last column
    return is_known[:, :-1]
