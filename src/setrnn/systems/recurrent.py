"""A recurrent system: sequences of labels, and the sets they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setrnn.data.ragged import Ragged
from setrnn.model.interfaces import Encoding
from setrnn.search.beam_search import Sequences, search_orders
from setrnn.search.set_search import (
    ScoredSets,
    most_probable_completions,
    most_probable_sets,
    set_log_prob,
    sets_of_best_sequences,
)
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.known import Known, completed, something_known
from setrnn.systems.neural import CandidateTable, NeuralSystem, Rows


@dataclass(frozen=True)
class RecurrentSystem(NeuralSystem):
    """A network whose decoder emits labels one by one, and the two-level search (Algorithm 3)."""

    emits_sequences: ClassVar[bool] = True

    @property
    def sequences(self) -> RecurrentSystem:
        """The system itself: it emits sequences."""
        return self

    @torch.inference_mode()
    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document.

        Their number is bounded by the beam width, or twice that where labels are known. From
        "sequences", a set stands for its best sequence, and has that probability.
        """
        known = something_known(known, source)
        if known is not None:
            return self._completions(tokens, known)
        find = most_probable_sets if source == "sets" else sets_of_best_sequences
        width, max_labels = self.config.search.beam_width, self.config.model.max_labels
        table = CandidateTable(len(tokens), width)

        def search(rows: Rows, encoding: Encoding) -> ScoredSets:
            return find(self.network.decoder, encoding, width, max_labels)

        for rows, found in self.by_batch(tokens, search):
            table.fill(rows, found.labels, found.log_probs)
        return SetCandidates(table.labels, table.log_probs)

    def _completions(self, tokens: Ragged, known: Known) -> SetCandidates:
        width, max_labels = self.config.search.beam_width, self.config.model.max_labels
        known.check_sizes(max_labels)
        table = CandidateTable(len(tokens), 2 * width)

        def search(rows: Rows, encoding: Encoding) -> ScoredSets:
            present = self.sets_on_device(known.present, rows)
            absent = self.sets_on_device(known.absent, rows)
            return most_probable_completions(
                self.network.decoder, encoding, present, absent, width, max_labels
            )

        for rows, found in self.by_batch(tokens, search):
            table.fill(rows, found.labels, found.log_probs)
        return completed(table.labels, table.log_probs, known)

    @torch.inference_mode()
    def set_log_probs(
        self, tokens: Ragged, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G).

        The sum over the orders that the search finds: a lower bound for large sets.
        """
        log_probs = np.zeros(label_sets.shape[:2])
        width = self.config.search.beam_width

        def score(rows: Rows, encoding: Encoding) -> Tensor:
            sets = self.sets_on_device(label_sets, rows)
            return set_log_prob(self.network.decoder, encoding, sets, width)

        for rows, found in self.by_batch(tokens, score):
            log_probs[rows] = found.cpu().numpy()
        return log_probs

    @torch.inference_mode()
    def orders(
        self, tokens: Ragged, label_sets: npt.NDArray[np.int32], beam_width: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Find the best orders of one set a document, (n, S) that -1 fills up.

        Returns them by falling probability, (n, K, S), and log p of each sequence, (n, K).
        """
        table = CandidateTable(len(tokens), beam_width)

        def search(rows: Rows, encoding: Encoding) -> Sequences:
            sets = self.sets_on_device(label_sets[:, None], rows)
            return search_orders(self.network.decoder, encoding, sets, beam_width)

        for rows, found in self.by_batch(tokens, search):
            table.fill(rows, found.labels[:, 0], found.log_probs[:, 0])
        return table.labels, table.log_probs
