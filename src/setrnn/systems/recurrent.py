"""Systems that emit labels one by one, and those of them that ignore the order of the labels."""

# n documents, B of a batch, K sets or orders, G given sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from setrnn.data.ragged import Ragged
from setrnn.model.interfaces import Encoding, OrderFree
from setrnn.search.beam_search import search_orders
from setrnn.search.label_probs import sample_label_probs
from setrnn.search.lattice import rank_by_exact, search_sets
from setrnn.search.set_search import (
    ScoredSets,
    best_sequences,
    most_probable_completions,
    most_probable_sets,
    set_log_prob,
    sets_of_sequences,
)
from setrnn.search.subset_sums import EXACT_UP_TO, MOST_LABELS, set_log_prob_by_subsets
from setrnn.systems.candidates import Floats, Floats32, Ids, SetCandidates, rank_sets
from setrnn.systems.known import Known, make_completions
from setrnn.systems.neural import NeuralSystem, Rows
from setrnn.systems.rules import MANY_SETS
from setrnn.systems.system import System

# Prefixes that stand for all, to estimate the probabilities of labels; more gain little.
N_PREFIXES = 8
# Limits of one call that sums over subsets: subsets, and values of the memories of their documents.
MAX_SUBSETS, MAX_MEMORY = 65_536, 2**26


@dataclass(frozen=True)
class RecurrentSystem(NeuralSystem):
    """A network that emits labels one by one; it predicts by the two-level search (Algorithm 3)."""

    emits_sequences: ClassVar[bool] = True
    stops_early: ClassVar[bool] = True

    @torch.inference_mode()
    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document.

        The beam width limits their number, or twice the beam width if labels are known. If few
        are asked for, sets that cannot be among them may be left out. With source "sequences", a
        set has the probability of its best sequence. If many sets are asked for, the
        probabilities of the labels are estimated too, from more than these sets.
        """
        if known is not None:
            return self._completions(tokens, known)
        return self._search_sources(tokens, {source: n_sets})[source]

    @torch.inference_mode()
    def candidates_by_source(
        self, tokens: Ragged, n_sets: Mapping[str, int]
    ) -> dict[str, SetCandidates]:
        """Find as many candidates of each source as are asked for, with the same sequences."""
        return self._search_sources(tokens, n_sets)

    def _search_sources(
        self, tokens: Ragged, n_sets: Mapping[str, int]
    ) -> dict[str, SetCandidates]:
        width, max_labels = self.config.search.beam_width, self.config.model.max_labels
        decoder = self.network.decoder

        def search(rows: Rows, encoding: Encoding) -> dict[str, ScoredSets]:
            found: dict[str, ScoredSets] = {}
            sequences = None
            if "sets" in n_sets:
                n_best = n_sets["sets"] if n_sets["sets"] < MANY_SETS else None
                found["sets"] = most_probable_sets(decoder, encoding, width, max_labels, n_best)
                sequences = found["sets"].sequences
            if "sequences" in n_sets:
                if sequences is None:
                    sequences = best_sequences(decoder, encoding, width, max_labels)
                found["sequences"] = sets_of_sequences(sequences)
            many = [source for source in found if n_sets[source] >= MANY_SETS]
            if many:  # else, only the best are of interest
                label_probs = self._sample(encoding)
                found |= {name: replace(found[name], label_probs=label_probs) for name in many}
            return found

        return self.gather_by_source(tokens, width, list(n_sets), search)

    def _completions(self, tokens: Ragged, known: Known) -> SetCandidates:
        width, max_labels = self.config.search.beam_width, self.config.model.max_labels

        def search(rows: Rows, encoding: Encoding) -> ScoredSets:
            present = self.sets_on_device(known.present, rows)
            absent = self.sets_on_device(known.absent, rows)
            return most_probable_completions(
                self.network.decoder, encoding, present, absent, width, max_labels
            )

        return make_completions(self.gather_sets(tokens, 2 * width, search), known)

    @torch.inference_mode()
    def marginals(self, tokens: Ragged, candidates: SetCandidates | None = None) -> Floats32:
        """Return an estimate of p(label | document), (n, L); candidates of many sets have it."""
        if candidates is None or candidates.label_probs is not None:
            return super().marginals(tokens, candidates)
        shape = (len(tokens), self.network.decoder.n_labels)

        def sample(rows: Rows, encoding: Encoding) -> Tensor:
            return self._sample(encoding)

        sampled = self.gather_values(tokens, np.zeros(shape, dtype=np.float32), sample)
        return candidates.bound_marginals(sampled)

    def _sample(self, encoding: Encoding) -> Tensor:
        max_labels = self.config.model.max_labels
        return sample_label_probs(self.network.decoder, encoding, N_PREFIXES, max_labels)

    @torch.inference_mode()
    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1.

        It is a lower bound for large sets.
        """

        def score(rows: Rows, encoding: Encoding) -> Tensor:
            return self.score_sets(encoding, self.sets_on_device(label_sets, rows))

        return self.gather_values(tokens, np.zeros(label_sets.shape[:2]), score)

    def score_sets(self, encoding: Encoding, label_sets: Tensor) -> Tensor:
        """Return log p (B, G) of sets (B, G, S): the sum over the orders that the search finds."""
        width = self.config.search.beam_width
        return set_log_prob(self.network.decoder, encoding, label_sets, width)

    @torch.inference_mode()
    def orders(self, tokens: Ragged, label_sets: Ids, beam_width: int) -> tuple[Ids, Floats]:
        """Find the best orders of one label set per document. Sets are (n, S), padded with -1.

        Returns orders (n, K, S) in descending order of probability, and log p of each, (n, K).
        """

        def search(rows: Rows, encoding: Encoding) -> ScoredSets:
            sets = self.sets_on_device(label_sets[:, None], rows)
            found = search_orders(self.network.decoder, encoding, sets, beam_width)
            return ScoredSets(found.labels[:, 0], found.log_probs[:, 0])

        found = self.gather_sets(tokens, beam_width, search)
        return found.labels, found.log_probs


@dataclass(frozen=True)
class OrderFreeSystem(RecurrentSystem):
    """A network whose decoder ignores the order of the labels so far."""

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

    def candidates_by_source(
        self, tokens: Ragged, n_sets: Mapping[str, int]
    ) -> dict[str, SetCandidates]:
        """Find as many candidates of each source as are asked for, by a search for each."""
        return System.candidates_by_source(self, tokens, n_sets)

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
