"""The System protocol: what every trained system can do, and what only some can."""

# n documents, G given sets, S labels of the largest set, L labels in all

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from setrnn.config import Config
from setrnn.data.ragged import Ragged
from setrnn.methods import Method
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.known import Known

if TYPE_CHECKING:
    from typing_extensions import Self

    from setrnn.data.prepared import Prepared
    from setrnn.progress import OnProgress
    from setrnn.systems.recurrent import RecurrentSystem

Arrays = Mapping[str, npt.NDArray[Any]]


class System(Protocol):
    """A trained system: rows of token ids to label sets with probabilities."""

    emits_sequences: ClassVar[bool]  # whether labels come one by one, so that rule "sequence" works
    max_training_labels: ClassVar[int | None]  # the most labels per training document, if limited

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document, or the sets of its best sequences.

        Returns the `n_sets` best where there are that many, and more where they cost nothing.
        Known labels only forbid sets: each set keeps its p(set | x).
        """

    def set_log_probs(
        self, tokens: Ragged, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""

    def marginals(
        self, tokens: Ragged, candidates: SetCandidates | None = None
    ) -> npt.NDArray[np.float32]:
        """Return p(label | document), (n, L). Candidates found before save time."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learned, by name."""

    @classmethod
    def from_arrays(cls, arrays: Arrays, method: Method, config: Config, device: str) -> Self:
        """Rebuild the system from its arrays on a device: auto, cpu or cuda."""

    @property
    def max_labels(self) -> int | None:
        """The most labels that a set may have; None for no limit."""

    @property
    def device_name(self) -> str:
        """Where the system computes: cpu or cuda."""

    @property
    def sequences(self) -> RecurrentSystem | None:
        """The same system if it emits sequences; None otherwise."""

    def with_beam_width(self, beam_width: int) -> Self | None:
        """Return the same system with another beam width; None if it has no search to widen."""

    def check_sizes(self, n_tokens: int, n_labels: int) -> None:
        """Raise ValueError if the weights are for another vocabulary or other labels."""


class FittedSystem(System, Protocol):
    """A system that is fitted in one go, without epochs."""

    @classmethod
    def train(cls, prepared: Prepared, config: Config, on_progress: OnProgress) -> Self:
        """Fit on the train part of prepared data."""
