"""What all networks share, from token ids to label sets in batches, and one sigmoid per label."""

# n documents, K candidates, G sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
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
from setrnn.model.devices import (
    find_device,
    has_device,
    limited_threads,
    patient_threads,
    thread_pool,
)
from setrnn.model.interfaces import Encoding
from setrnn.model.network import Network, find_window, rebuild_network
from setrnn.search.set_search import ScoredSets
from setrnn.systems.candidates import Floats, Floats32, Ids, Ints, SetCandidates
from setrnn.systems.kept import KeptTokens
from setrnn.systems.known import Known
from setrnn.systems.products import (
    EMPTY_SHIFT,
    most_probable_products,
    pack_shift,
    product_log_probs,
    unpack_shift,
)
from setrnn.systems.rules import MANY_SETS
from setrnn.systems.system import Arrays, System

if TYPE_CHECKING:
    from typing_extensions import Self

# Limits of a batch. Documents differ in how many prefixes their sets need. A CPU spends its time
# on arithmetic: in small batches, fewer documents wait for the one that needs most. A GPU spends
# its time on starting operations: large batches are faster, as far as its memory goes.
MAX_DOCUMENTS, MAX_DOCUMENTS_ON_CPU, MAX_WORDS = 2_048, 64, 262_144
# On a CPU, padding costs as much as words do: no document waits for one of twice its length.
LEAST_SHARE_ON_CPU = 0.5
MAX_SCORES = 2**29  # outputs of the beams of all searches of all documents

Rows = Ints  # the rows of a batch
Score = Callable[[Rows, Encoding], Tensor]
Array = TypeVar("Array", Floats, Floats32)
Found = TypeVar("Found")


@dataclass(frozen=True)
class NeuralSystem(System):
    """A network with its settings and device; a subclass predicts with it."""

    network: Network
    config: Config
    device: torch.device

    @classmethod
    def from_arrays(cls, arrays: Arrays, method: Method, config: Config, device: str) -> Self:
        """Rebuild the system from its arrays on a device: auto, cpu, cuda or mps."""
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
        """Where the system computes: cpu, cuda or mps."""
        return self.device.type

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
                f"they are for {n_words:,} words and {n_outputs:,} labels, but the lists have "
                f"{n_tokens:,} and {n_labels:,}"
            )

    def marginals(self, tokens: Ragged, candidates: SetCandidates | None = None) -> Floats32:
        """Return p(label | document), (n, L), from the candidates."""
        if candidates is None:
            candidates = self.candidates(tokens, MANY_SETS)
        return candidates.marginals(self.network.decoder.n_labels)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all learned weights by name."""
        weights = self.network.state_dict()
        return {name: tensor.detach().cpu().numpy() for name, tensor in weights.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Copy the weights to the CPU: the pickle may be loaded on a machine without a GPU."""
        network = self.network
        if self.device.type != "cpu":
            network = deepcopy(network).cpu()
        return {**self.__dict__, "network": network}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Move the weights to the device they were on, or to the CPU if there is no GPU."""
        is_here = has_device(state["device"].type)
        state["device"] = state["device"] if is_here else torch.device("cpu")
        state["network"] = state["network"].to(state["device"])
        self.__dict__.update(state)

    def by_batch(
        self, tokens: Ragged, work: Callable[[Rows, Encoding], Found]
    ) -> Iterator[tuple[Rows, Found]]:
        """Encode documents in batches of similar length, and apply `work` to each encoding.

        Yields the rows of each batch and the result. On a CPU, each thread works on its own
        batch: threads that share a batch wait for each other at every step.
        """
        on_cpu = self.device.type == "cpu"
        most = MAX_DOCUMENTS_ON_CPU if on_cpu else MAX_DOCUMENTS
        n_scores = self.config.search.beam_width**2 * (self.network.decoder.n_labels + 1)
        most = max(min(most, MAX_SCORES // n_scores), 1)
        least_share = LEAST_SHARE_ON_CPU if on_cpu else 0.0
        window, most_words = find_window(self.config.text), MAX_WORDS
        if on_cpu and window is not None:  # as many words as documents of one window have
            most_words = min(MAX_DOCUMENTS_ON_CPU * window, MAX_WORDS)
        kept = KeptTokens.of(tokens)
        batches = prediction_batches(kept.whole.lengths, most, most_words, least_share)
        place = np.full(len(kept.whole), -1)  # of the documents of the whole batch among these
        place[kept.places] = np.arange(len(kept))
        batches = [rows for rows in batches if (place[rows] >= 0).any()]

        @torch.inference_mode()
        def find(batch: Rows) -> tuple[Rows, Found]:
            key, chosen = (id(self.network), batch.tobytes()), np.flatnonzero(place[batch] >= 0)
            rows, encoding = place[batch[chosen]], kept.kept.get(key)
            if encoding is None:
                encoding = self.network.encode(make_batch(tokens, None, rows).to(self.device))
            elif len(rows) < len(batch):
                encoding = encoding.rows(torch.from_numpy(chosen).to(self.device))
            found = work(rows, encoding)
            if kept is tokens and len(rows) == len(batch):
                kept.store(key, encoding, encoding.n_bytes)
            return rows, found

        is_shared = on_cpu and len(batches) > 1
        was_training = self.network.training
        if was_training:
            self.network.eval()
        try:
            if is_shared:
                with thread_pool() as threads:
                    yield from threads.map(find, batches)
            else:
                # Of a single batch, only a transformer gains by several threads.
                is_pretrained = self.config.encoder.is_pretrained
                threads_of_one = patient_threads() if is_pretrained else limited_threads(1)
                for batch in batches:
                    with threads_of_one if on_cpu else nullcontext():
                        found = find(batch)
                    yield found
        finally:
            if was_training:
                self.network.train()

    def gather_sets(
        self, tokens: Ragged, n_sets: int, search: Callable[[Rows, Encoding], ScoredSets]
    ) -> SetCandidates:
        """Search in batches; return the sets of all documents, with at least `n_sets` columns."""

        def search_one(rows: Rows, encoding: Encoding) -> dict[str, ScoredSets]:
            return {"sets": search(rows, encoding)}

        return self.gather_by_source(tokens, n_sets, ["sets"], search_one)["sets"]

    def gather_by_source(
        self,
        tokens: Ragged,
        n_sets: int,
        sources: Sequence[str],
        search: Callable[[Rows, Encoding], Mapping[str, ScoredSets]],
    ) -> dict[str, SetCandidates]:
        """Search in batches for the sets of several sources."""
        rows = [np.zeros(0, dtype=np.int64)]
        parts: dict[str, list[SetCandidates]] = {source: [] for source in sources}
        for rows_of_batch, found in self.by_batch(tokens, search):
            rows.append(rows_of_batch)
            for source in sources:
                parts[source].append(as_candidates(found[source]))
        order = np.argsort(np.concatenate(rows))
        return {
            source: SetCandidates.concatenate(each, n_sets).take(order)
            for source, each in parts.items()
        }

    def gather_values(self, tokens: Ragged, values: Array, score: Score) -> Array:
        """Score in batches; write the result for each document into its row of `values`."""
        for rows, found in self.by_batch(tokens, score):
            values[rows] = found.cpu().numpy()
        return values

    def sets_on_device(self, label_sets: Ids, rows: Rows) -> Tensor:
        """Copy the sets of a batch to the device, as wide as the largest: (B, G, S)."""
        chosen = label_sets[rows]
        width = int((chosen >= 0).sum(-1).max(initial=0))
        return torch.from_numpy(chosen[..., :width].astype(np.int64)).to(self.device)


def as_candidates(found: ScoredSets) -> SetCandidates:
    """Copy what a search found for a batch to the CPU."""
    own = found.certificate
    return SetCandidates(
        found.labels.cpu().numpy().astype(np.int32),
        found.log_probs.cpu().numpy().astype(np.float64),
        is_proved=None if own is None else own.is_proved.cpu().numpy(),
        pruned=None if own is None else own.pruned.cpu().numpy().astype(np.float64),
        label_probs=None if found.label_probs is None else found.label_probs.cpu().numpy(),
    )


@dataclass(frozen=True)
class IndependentSystem(NeuralSystem):
    """A network whose labels are independent, given the document: all probabilities are exact."""

    # A product over labels does not know how many documents have none.
    shifts_empty_set: ClassVar[bool] = True
    empty_shift: float = 0.0  # added to the log-odds of the empty set

    @classmethod
    def from_arrays(cls, arrays: Arrays, method: Method, config: Config, device: str) -> Self:
        """Rebuild the system from its arrays on a device: auto, cpu, cuda or mps."""
        weights = dict(arrays)
        shift = unpack_shift(weights.pop(EMPTY_SHIFT))
        return super().from_arrays(weights, method, config, device).with_empty_shift(shift)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all learned weights by name."""
        return {**super().arrays(), EMPTY_SHIFT: pack_shift(self.empty_shift)}

    def with_empty_shift(self, shift: float) -> Self:
        """Return the same system with another probability of the empty set."""
        return replace(self, empty_shift=shift)

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document; the first has all labels above 1/2."""
        return most_probable_products(self.logits(tokens), n_sets, known, self.empty_shift)

    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        return product_log_probs(self.logits(tokens), label_sets, self.empty_shift)

    @torch.inference_mode()
    def logits(self, tokens: Ragged) -> Floats32:
        """Return the log-odds of each label, (n, L)."""
        if isinstance(tokens, KeptTokens):
            return np.asarray(tokens.once(id(self.network), self.logits))

        def score(rows: Rows, encoding: Encoding) -> Tensor:
            found: Tensor = self.network.decoder.logits(encoding)
            return found

        shape = (len(tokens), self.network.decoder.n_labels)
        return self.gather_values(tokens, np.zeros(shape, dtype=np.float32), score)
