"""An order-free system: one search over sets, each with a certificate."""

# n documents, G sets a document, S labels of the largest

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch

from setrnn.data.ragged import Ragged
from setrnn.decoding.candidates import Certificates, SetCandidates
from setrnn.decoding.known import Known, something_known
from setrnn.model.interfaces import OrderFree
from setrnn.neural.recurrent import RecurrentSystem
from setrnn.neural.system import CandidateTable
from setrnn.search.lattice import search_sets
from setrnn.search.subset_sums import EXACT_UP_TO, set_log_prob_by_subsets

MAX_SUBSETS = 65_536  # that are evaluated at once


@dataclass(frozen=True)
class OrderFreeSystem(RecurrentSystem):
    """A network whose decoder forgets the order of the labels so far."""

    @torch.inference_mode()
    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document.

        A set has the probability of all its orders that the search met: with what was pruned,
        at most so much more. From "sequences", as with any decoder that emits labels one by one.
        """
        if source != "sets" or something_known(known, source) is not None:
            return super().candidates(tokens, n_sets, source, known)
        width, max_labels = self.config.search.beam_width, self.config.model.max_labels
        table = CandidateTable(len(tokens), max(width, n_sets))
        is_proved = np.zeros(len(tokens), dtype=bool)
        pruned = np.zeros(len(tokens))
        for rows, encoding in self.encoded(tokens):
            found = search_sets(self._decoder, encoding, width, max_labels, n_sets)
            table.fill(rows, found.labels, found.log_probs)
            is_proved[rows] = found.is_proved.cpu().numpy()
            pruned[rows] = found.pruned.cpu().numpy()
        certificates = Certificates(is_proved, pruned)
        return SetCandidates(table.labels, table.log_probs, certificates=certificates)

    def _completions(self, tokens: Ragged, known: Known) -> SetCandidates:
        """Find sets as a recurrent system does; their probabilities are exact."""
        found = super()._completions(tokens, known)
        is_set = found.log_probs > -np.inf
        log_probs = np.where(is_set, self.set_log_probs(tokens, found.labels), -np.inf)
        order = np.argsort(-log_probs, axis=1, kind="stable")
        return SetCandidates(
            np.take_along_axis(found.labels, order[..., None], axis=1),
            np.take_along_axis(log_probs, order, axis=1),
        )

    @torch.inference_mode()
    def set_log_probs(
        self, tokens: Ragged, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G).

        Exact up to ten labels; a lower bound above.
        """
        log_probs = np.zeros(label_sets.shape[:2])
        width = self.config.search.beam_width
        for rows, encoding in self.encoded(tokens):
            sets = self.sets_on_device(label_sets, rows)
            B, G, S = sets.shape
            flat = sets.flatten(0, 1)
            sizes = (flat >= 0).sum(1).cpu()
            found = torch.zeros(B * G, device=self.device)
            for part in _parts(sizes):
                index = part.to(self.device)
                found[index] = set_log_prob_by_subsets(
                    self._decoder, encoding.rows(index // G), flat[index], sizes[part], width
                )
            log_probs[rows] = found.view(B, G).cpu().numpy()
        return log_probs

    @property
    def _decoder(self) -> OrderFree:
        return cast("OrderFree", self.network.decoder)


def _parts(sizes: torch.Tensor) -> list[torch.Tensor]:
    """Cut sets of these sizes (N,) into parts of alike size, each with not too many subsets."""
    order = sizes.argsort(stable=True)
    n_subsets = (2 ** sizes[order].clamp(max=EXACT_UP_TO)).cumsum(0)
    number = (n_subsets - 1) // MAX_SUBSETS
    counts = torch.bincount(number) if len(number) else number
    return [part for part in torch.split(order, counts.tolist()) if len(part)]
