"""A system that has its labels in another order: its ids are translated."""

# n documents, L labels, K candidates, G given sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from setrnn.config import Config
from setrnn.data.ragged import Ragged
from setrnn.methods import Method
from setrnn.systems.candidates import (
    Floats,
    Floats32,
    Ids,
    Ints,
    LabelSizeProbs,
    SetCandidates,
    pack_labels,
)
from setrnn.systems.known import Known
from setrnn.systems.system import Arrays, System

LABEL_IDS = "label_ids"  # an array


def translate(ids: Ints | Ids, labels: Ids) -> Ids:
    """Replace each label of sets (..., S), padded with -1, by its id in `ids` (L,)."""
    return np.append(ids, -1).astype(np.int32)[labels]  # -1 reads the last


@dataclass(frozen=True)
class RelabelledCandidates(SetCandidates):
    """The candidates of a system in other label ids."""

    of_documents = (*SetCandidates.of_documents, "own")
    own: SetCandidates  # in the system's ids
    own_ids: Ids  # (L,) the system's id of each label

    def marginals(self, n_labels: int) -> Floats32:
        """Return p(label | document), (n, L)."""
        return self.own.marginals(n_labels)[:, self.own_ids]

    def missing_mass(self) -> Floats:
        """Return the total probability of the sets that are not candidates: (n,)."""
        return self.own.missing_mass()

    def label_size_probs(self, n_labels: int, also: Sequence[int] = ()) -> LabelSizeProbs:
        """Return p(label in the set, size of the set) for the labels that matter."""
        found = self.own.label_size_probs(n_labels, self.own_ids[list(also)].tolist())
        labels = translate(np.argsort(self.own_ids), found.labels)
        # ascending, with -1 last
        places = np.argsort(np.where(labels < 0, n_labels, labels), axis=1, kind="stable")
        return LabelSizeProbs(
            np.take_along_axis(labels, places, axis=1),
            np.take_along_axis(found.probs, places[:, :, None], axis=1),
            found.empty,
        )

    def log_probs_of(self, label_sets: Ids) -> Floats:
        """Return log p of given sets (n, G, S), packed: (n, G), NaN if a set is not known."""
        return self.own.log_probs_of(pack_labels(translate(self.own_ids, label_sets)))


@dataclass(frozen=True)
class RelabelledSystem(System):
    """A system whose labels are in another order."""

    stops_early: ClassVar[bool] = True  # as some systems do
    own: System
    own_ids: Ids  # (L,) the system's id of each label

    def __post_init__(self) -> None:
        """Raise ValueError if a label has no id, or two have the same."""
        if not np.array_equal(np.sort(self.own_ids), np.arange(len(self.own_ids))):
            raise ValueError("a member's order of the labels does not have each label once")

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document."""
        if known is not None:
            known = Known(*(translate(self.own_ids, x) for x in (known.present, known.absent)))
        found = self.own.candidates(tokens, n_sets, source, known)
        labels = pack_labels(translate(np.argsort(self.own_ids), found.labels))
        probs = None if found.label_probs is None else found.label_probs[:, self.own_ids]
        return RelabelledCandidates(
            labels,
            found.log_probs,
            found,
            self.own_ids,
            is_proved=found.is_proved,
            pruned=found.pruned,
            label_probs=probs,
        )

    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        return self.own.set_log_probs(tokens, pack_labels(translate(self.own_ids, label_sets)))

    def marginals(self, tokens: Ragged, candidates: SetCandidates | None = None) -> Floats32:
        """Return p(label | document), (n, L)."""
        own = candidates.own if isinstance(candidates, RelabelledCandidates) else None
        return self.own.marginals(tokens, own)[:, self.own_ids]

    @property
    def max_labels(self) -> int | None:
        """The most labels that a set may have; None for no limit."""
        return self.own.max_labels

    @property
    def device_name(self) -> str:
        """Where the system computes: cpu, cuda or mps."""
        return self.own.device_name

    def with_beam_width(self, beam_width: int) -> RelabelledSystem | None:
        """Return the same system with another beam width; None if it has no search to widen."""
        own = self.own.with_beam_width(beam_width)
        return None if own is None else replace(self, own=own)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all learned weights of the system by name, and its ids of the labels."""
        return {**self.own.arrays(), LABEL_IDS: self.own_ids}

    @classmethod
    def from_arrays(
        cls, arrays: Arrays, method: Method, config: Config, device: str
    ) -> RelabelledSystem:
        """Rebuild the system of a method, with its ids of the labels."""
        from setrnn.systems.registry import find_system  # it imports this file

        own = dict(arrays)
        own_ids = np.asarray(own.pop(LABEL_IDS), dtype=np.int32)
        return cls(find_system(method).from_arrays(own, method, config, device), own_ids)

    def check_sizes(self, n_tokens: int, n_labels: int) -> None:
        """Raise ValueError if the weights are for another vocabulary or other labels."""
        if len(self.own_ids) != n_labels:
            raise ValueError(f"a member does not have the {n_labels:,} labels of the list")
        self.own.check_sizes(n_tokens, n_labels)
