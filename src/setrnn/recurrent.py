"""A recurrent system end to end: token ids to encodings to label sets."""

# n documents, K candidates, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from setrnn.config import Config
from setrnn.data.batches import Batch, make_batch, prediction_batches
from setrnn.data.ragged import Ragged
from setrnn.decoding.candidates import SetCandidates
from setrnn.model.interfaces import Decoder, Encoding
from setrnn.model.network import Network, rebuild_network
from setrnn.search.set_search import ScoredSets, most_probable_sets, sets_of_best_sequences

# Of a batch. Documents differ in how many prefixes their sets need: a CPU, which spends its time
# on arithmetic, gains from small batches, where fewer wait for the one that needs most.
MAX_DOCUMENTS, MAX_DOCUMENTS_ON_CPU, MAX_WORDS = 512, 64, 65_536


@dataclass(frozen=True)
class RecurrentSystem:
    """A network, and the search that predicts with it."""

    network: Network
    config: Config
    device: torch.device

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        config: Config,
        device: torch.device,
        decoder: str = "rnn",
    ) -> RecurrentSystem:
        """Build the system from what it had learned."""
        weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
        network = rebuild_network(weights, config.model, decoder)
        return cls(network.to(device), config, device)

    def candidates(self, tokens: Ragged, n_sets: int, source: str = "sets") -> SetCandidates:
        """Find the most probable sets of each document.

        Their number is bounded by the beam width. From "sequences", a set stands for its best
        sequence, and has that probability.
        """
        find = most_probable_sets if source == "sets" else sets_of_best_sequences
        K = self.config.search.beam_width
        labels = np.full((len(tokens), K, 1), -1, dtype=np.int32)
        log_probs = np.full((len(tokens), K), -np.inf)
        for rows, found in self._search(tokens, find):
            _, G, S = found.labels.shape
            if labels.shape[2] < S:
                more = ((0, 0), (0, 0), (0, S - labels.shape[2]))
                labels = np.pad(labels, more, constant_values=-1)
            labels[rows, :G, :S] = found.labels.cpu().numpy()
            log_probs[rows, :G] = found.log_probs.cpu().numpy()
        return SetCandidates(labels, log_probs)

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

    def _search(
        self, tokens: Ragged, find: Callable[[Decoder, Encoding, int, int], ScoredSets]
    ) -> Iterator[tuple[npt.NDArray[np.int64], ScoredSets]]:
        """Run a search on batches of documents of alike length."""
        most = MAX_DOCUMENTS_ON_CPU if self.device.type == "cpu" else MAX_DOCUMENTS
        width, max_labels = self.config.search.beam_width, self.config.model.max_labels
        was_training = self.network.training
        self.network.eval()
        try:
            for rows in prediction_batches(tokens.lengths, most, MAX_WORDS):
                batch: Batch = make_batch(tokens, None, rows).to(self.device)
                with torch.inference_mode():
                    encoding = self.network.encode(batch)
                    found = find(self.network.decoder, encoding, width, max_labels)
                yield batch.rows, found
        finally:
            self.network.train(was_training)
