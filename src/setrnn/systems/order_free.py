"""Order-free systems: one search over sets, with a certificate."""

# n documents, B of a batch, G sets per document, S labels of the largest

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from setrnn.data.ragged import Ragged
from setrnn.model.interfaces import Encoding, OrderFree
from setrnn.search.lattice import rank_by_exact, search_sets
from setrnn.search.set_search import ScoredSets
from setrnn.search.subset_sums import EXACT_UP_TO, MOST_LABELS, set_log_prob_by_subsets
from setrnn.systems.candidates import SetCandidates, rank_sets
from setrnn.systems.known import Known
from setrnn.systems.neural import Rows
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.systems.rules import MANY_SETS

# Limits of one call: subsets, and values of the memories of their documents.
MAX_SUBSETS, MAX_MEMORY = 65_536, 2**26


@dataclass(frozen=True)
class OrderFreeSystem(RecurrentSystem):
    """A network whose decoder ignores the order of the labels so far."""

    shares_sources: ClassVar[bool] = False
    max_training_labels: ClassVar[int | None] = MOST_LABELS

    @torch.inference_mode()
    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document.

        The first `search.exact_sets` have their exact probability, up to ten labels; the others
        have the sum over the orders that the search found. With source "sequences", the search is
        that of any decoder that emits labels one by one.
        """
        if source != "sets":
            return super().candidates(tokens, n_sets, source)
        if known is not None:
            return self._completions(tokens, known)
        return self._search(tokens, n_sets)

    def _search(self, tokens: Ragged, n_sets: int) -> SetCandidates:
        """Search, and compute the exact probabilities of the best sets."""
        width, max_labels = self.config.search.beam_width, self.config.model.max_labels
        n_exact = self.config.search.exact_sets
        # The sets with exact probabilities do not depend on how many are asked for.
        n_best = max(n_sets, n_exact)

        def search(rows: Rows, encoding: Encoding) -> ScoredSets:
            found = search_sets(
                self._decoder, encoding, width, max_labels, n_best, n_sets >= MANY_SETS
            )
            best = found.labels[:, :n_exact]
            if not best.shape[1]:
                return found
            is_exact = (best >= 0).sum(2) <= EXACT_UP_TO
            is_set = found.log_probs[:, : best.shape[1]] > -torch.inf
            log_probs = self.score_sets(encoding, best).where(is_set, -torch.inf)
            return rank_by_exact(found, log_probs, is_exact)

        return self.gather_sets(tokens, max(width, n_sets), search)

    def _completions(self, tokens: Ragged, known: Known) -> SetCandidates:
        """Find sets as a recurrent system does, and compute their exact probabilities."""
        found = super()._completions(tokens, known)
        is_set = found.log_probs > -np.inf
        log_probs = np.where(is_set, self.set_log_probs(tokens, found.labels), -np.inf)
        return SetCandidates(*rank_sets(found.labels, log_probs))

    def score_sets(self, encoding: Encoding, label_sets: Tensor) -> Tensor:
        """Return log p (B, G) of sets (B, G, S), summed over their subsets.

        It is exact up to ten labels, a lower bound for more, and -inf for too many labels to sum.
        """
        B, G, S = label_sets.shape
        flat = label_sets.flatten(0, 1)
        sizes = (flat >= 0).sum(1).cpu()
        found = torch.full((B * G,), -torch.inf, device=self.device)
        for part in _split_by_size(sizes, encoding.memory[0].numel() if B else 1):
            index = part.to(self.device)
            found[index] = set_log_prob_by_subsets(
                self._decoder,
                encoding,
                flat[index],
                sizes[part],
                self.config.search.beam_width,
                documents=index // G,
            )
        return found.view(B, G)

    @property
    def _decoder(self) -> OrderFree:
        return cast("OrderFree", self.network.decoder)


def _split_by_size(sizes: Tensor, memory_size: int) -> list[Tensor]:
    """Split sets of these sizes (N,) into parts of similar size that fit into memory.

    Each set needs the memory of its document. Sets of too many labels are left out.
    """
    order = sizes.argsort(stable=True)
    order = order[sizes[order] <= MOST_LABELS]
    n_subsets = (2 ** sizes[order].clamp(max=EXACT_UP_TO)).cumsum(0)
    n_values = torch.arange(1, len(order) + 1) * memory_size
    number = torch.maximum((n_subsets - 1) // MAX_SUBSETS, (n_values - 1) // MAX_MEMORY)
    counts = torch.bincount(number) if len(number) else number
    return [part for part in torch.split(order, counts.tolist()) if len(part)]
