"""Recurrent systems: sequences of labels, and the sets of these sequences."""

# n documents, K sets or orders, G given sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from setrnn.data.ragged import Ragged
from setrnn.model.interfaces import Encoding
from setrnn.search.beam_search import search_orders
from setrnn.search.label_probs import sample_label_probs
from setrnn.search.set_search import (
    ScoredSets,
    best_sequences,
    most_probable_completions,
    most_probable_sets,
    set_log_prob,
    sets_of_sequences,
)
from setrnn.systems.candidates import Floats, Floats32, Ids, SetCandidates
from setrnn.systems.known import Known, make_completions
from setrnn.systems.neural import NeuralSystem, Rows
from setrnn.systems.rules import MANY_SETS

# Prefixes that stand for all, to estimate the probabilities of labels; more gain little.
N_PREFIXES = 8


@dataclass(frozen=True)
class RecurrentSystem(NeuralSystem):
    """A network that emits labels one by one; it predicts by the two-level search (Algorithm 3)."""

    emits_sequences: ClassVar[bool] = True
    stops_early: ClassVar[bool] = True
    shares_sources: ClassVar[bool] = True

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
        if not self.shares_sources:
            return super().candidates_by_source(tokens, n_sets)
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
