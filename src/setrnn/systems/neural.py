"""A network end to end: token ids to encodings to label sets; what all such systems share."""

# n documents, K candidates, G sets, S labels of the largest set

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setrnn.config import Config
from setrnn.data.batches import make_batch, prediction_batches
from setrnn.data.ragged import Ragged
from setrnn.methods import Method
from setrnn.model.devices import find_device
from setrnn.model.interfaces import Encoding
from setrnn.model.network import Network, rebuild_network
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.known import Known
from setrnn.systems.threads import in_threads

if TYPE_CHECKING:
    from typing_extensions import Self

    from setrnn.systems.recurrent import RecurrentSystem

# Of a batch. Documents differ in how many prefixes their sets need: a CPU, which spends its time
# on arithmetic, gains from small batches, where fewer wait for the one that needs most. A GPU
# spends its time on starting operations: it gains from large ones, as far as its memory goes.
MAX_DOCUMENTS, MAX_DOCUMENTS_ON_CPU, MAX_WORDS = 2_048, 64, 262_144
MAX_SCORES = 2**29  # of outputs, for the beams of all searches of all documents

Rows = npt.NDArray[np.int64]  # of a batch
Found = TypeVar("Found")


@dataclass(frozen=True)
class NeuralSystem(ABC):
    """A network, and the way to predict with it."""

    network: Network
    config: Config
    device: torch.device
    emits_sequences: ClassVar[bool] = False
    max_training_labels: ClassVar[int | None] = None

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], method: Method, config: Config, device: str
    ) -> Self:
        """Rebuild the system from its arrays on a device: auto, cpu or cuda."""
        place = find_device(device)
        weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
        network = rebuild_network(weights, config, method.decoder)
        return cls(network.to(place), config, place)

    @property
    def max_labels(self) -> int | None:
        """The most labels that a set may have."""
        return self.config.model.max_labels

    @property
    def device_name(self) -> str:
        """Where the system computes: cpu or cuda."""
        return self.device.type

    @property
    def sequences(self) -> RecurrentSystem | None:
        """The same system if it emits sequences; None otherwise."""
        return None

    def with_beam_width(self, beam_width: int) -> Self | None:
        """Return the same system with another beam width."""
        search = replace(self.config.search, beam_width=beam_width)
        return replace(self, config=replace(self.config, search=search))

    def check_sizes(self, n_tokens: int, n_labels: int) -> None:
        """Raise ValueError if the weights are for another vocabulary or other labels."""
        n_words, n_outputs = self.network.encoder.n_tokens, self.network.decoder.n_labels
        # A transformer may have more embeddings than its tokenizer has tokens.
        is_padded = self.config.encoder.is_pretrained and n_words > n_tokens
        if (n_words != n_tokens and not is_padded) or n_outputs != n_labels:
            raise ValueError(
                f"they are for {n_words:,} words and {n_outputs:,} labels, the lists have "
                f"{n_tokens:,} and {n_labels:,}"
            )

    @abstractmethod
    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document, or the sets of its best sequences."""

    @abstractmethod
    def set_log_probs(
        self, tokens: Ragged, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G)."""

    def marginals(
        self, tokens: Ragged, candidates: SetCandidates | None = None
    ) -> npt.NDArray[np.float32]:
        """Return p(label | document), documents x labels, from the candidates' share of it."""
        if candidates is None:
            candidates = self.candidates(tokens, self.config.search.beam_width)
        return candidates.marginals(self.network.decoder.n_labels)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all that was learned, by name."""
        weights = self.network.state_dict()
        return {name: tensor.detach().cpu().numpy() for name, tensor in weights.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Copy the weights to the CPU: a pickle may be read where there is no GPU."""
        network = self.network
        if self.device.type != "cpu":
            network = deepcopy(network).cpu()
        return {"network": network, "config": self.config, "device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the place it had where there is one."""
        has_place = state["device"].type == "cpu" or torch.cuda.is_available()
        state["device"] = state["device"] if has_place else torch.device("cpu")
        state["network"] = state["network"].to(state["device"])
        self.__dict__.update(state)

    def by_batch(
        self, tokens: Ragged, work: Callable[[Rows, Encoding], Found]
    ) -> Iterator[tuple[Rows, Found]]:
        """Read documents in batches of alike length, and work on each batch's encoding.

        Yields the rows of each batch and what was found. On a CPU each thread has a batch of its
        own: threads that share one wait for each other at every step.
        """
        most = MAX_DOCUMENTS_ON_CPU if self.device.type == "cpu" else MAX_DOCUMENTS
        n_scores = self.config.search.beam_width**2 * (self.network.decoder.n_labels + 1)
        most = max(min(most, MAX_SCORES // n_scores), 1)
        batches = prediction_batches(tokens.lengths, most, MAX_WORDS)

        @torch.inference_mode()
        def find(rows: Rows) -> Found:
            batch = make_batch(tokens, None, rows).to(self.device)
            return work(rows, self.network.encode(batch))

        is_shared = self.device.type == "cpu" and len(batches) > 1
        was_training = self.network.training
        self.network.eval()
        try:
            found = in_threads(find, batches) if is_shared else map(find, batches)
            yield from zip(batches, found, strict=True)
        finally:
            self.network.train(was_training)

    def sets_on_device(self, label_sets: npt.NDArray[np.int32], rows: Rows) -> Tensor:
        """Bring the sets of a batch to the device, as wide as the largest: (B, G, S)."""
        chosen = label_sets[rows]
        width = int((chosen >= 0).sum(-1).max(initial=0))
        return torch.from_numpy(chosen[..., :width].astype(np.int64)).to(self.device)


class CandidateTable:
    """Candidates of all documents, filled in batch by batch."""

    def __init__(self, n_documents: int, n_sets: int) -> None:
        self.labels = np.full((n_documents, n_sets, 1), -1, dtype=np.int32)
        self.log_probs = np.full((n_documents, n_sets), -np.inf)

    def fill(self, rows: Rows, labels: Tensor, log_probs: Tensor) -> None:
        """Put the sets (B, G, S) of a batch, and their log p (B, G), where they belong."""
        _, G, S = labels.shape
        if self.labels.shape[2] < S:
            more = ((0, 0), (0, 0), (0, S - self.labels.shape[2]))
            self.labels = np.pad(self.labels, more, constant_values=-1)
        self.labels[rows, :G, :S] = labels.cpu().numpy()
        self.log_probs[rows, :G] = log_probs.cpu().numpy()
