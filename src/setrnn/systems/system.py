"""The System protocol: what every trained system can do, and which capabilities it declares."""

# n documents, G given sets, S labels of the largest set, L labels in all

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy.typing as npt

from setrnn.config import Config
from setrnn.data.ragged import Ragged
from setrnn.methods import Method
from setrnn.systems.candidates import Floats, Floats32, Ids, SetCandidates
from setrnn.systems.known import Known

if TYPE_CHECKING:
    from typing_extensions import Self

Arrays = Mapping[str, npt.NDArray[Any]]


class System(Protocol):
    """A trained system: from rows of token ids to label sets with probabilities.

    A class that inherits from it has no limit on the labels of a set, computes on the CPU, emits no
    sequences and has no search to widen, unless it says otherwise.

    Example:
        >>> from setrnn.methods import METHODS
        >>> from setrnn.systems.registry import find_system
        >>> find_system(METHODS["set-rnn"]).emits_sequences
        True
    """

    emits_sequences: ClassVar[bool] = False  # whether labels are emitted one by one
    stops_early: ClassVar[bool] = False  # whether a search for few sets leaves out others
    # Whether p(empty set) is fitted after training; a recurrent system learns it.
    shifts_empty_set: ClassVar[bool] = False
    max_training_labels: ClassVar[int | None] = None  # the most labels per training document

    @abstractmethod
    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document, or the sets of its best sequences.

        Returns the `n_sets` best if there are that many, and more if they cost nothing. Known
        labels only exclude sets: p(set | x) does not change. The source "sequences" is only asked
        of systems that emit them, and without known labels.
        """

    def candidates_by_source(
        self, tokens: Ragged, n_sets: Mapping[str, int]
    ) -> dict[str, SetCandidates]:
        """Find as many candidates of each source as are asked for."""
        return {source: self.candidates(tokens, n, source) for source, n in n_sets.items()}

    @abstractmethod
    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""

    def marginals(self, tokens: Ragged, candidates: SetCandidates | None = None) -> Floats32:
        """Return p(label | document), (n, L). Candidates found before save time."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all learned weights by name."""

    @classmethod
    def from_arrays(cls, arrays: Arrays, method: Method, config: Config, device: str) -> Self:
        """Rebuild the system from its arrays on a device: auto, cpu, cuda or mps."""

    @property
    def max_labels(self) -> int | None:
        """The most labels that a set may have; None for no limit."""
        return None

    @property
    def device_name(self) -> str:
        """Where the system computes: cpu, cuda or mps."""
        return "cpu"

    def log_probs_by_rule(
        self, tokens: Ragged, label_sets: Ids, rules: Sequence[str]
    ) -> Sequence[Floats]:
        """Return log p (n, G) of given sets, by each of several rules: see `for_rule`."""
        return [self.set_log_probs(tokens, label_sets)] * len(rules)

    def for_rule(self, rule: str) -> System:
        """Return the system by which a rule predicts: itself, unless it is a mixture."""
        return self

    def with_beam_width(self, beam_width: int) -> Self | None:
        """Return the same system with another beam width; None if it has no search to widen."""
        return None

    def with_empty_shift(self, shift: float) -> Self:
        """Return the same system with the log-odds of the empty set shifted, if it shifts them."""
        return self

    def check_sizes(self, n_tokens: int, n_labels: int) -> None:
        """Raise ValueError if the weights are for another vocabulary or other labels."""
