"""Systems that score each label by itself, with one sigmoid per label."""

# n documents, L labels, G given sets, S labels of the largest set

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from setrnn.data.ragged import Ragged
from setrnn.model.interfaces import Encoding
from setrnn.systems.candidates import Floats, Floats32, Ids, SetCandidates
from setrnn.systems.known import Known, check_known, refuse_sequences
from setrnn.systems.neural import NeuralSystem, Rows
from setrnn.systems.products import (
    most_probable_non_empty,
    most_probable_products,
    non_empty_log_probs,
    product_log_probs,
)


@dataclass(frozen=True)
class IndependentSystem(NeuralSystem):
    """A network whose labels are independent, given the document: all probabilities are exact."""

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document; the first has all labels above 1/2."""
        refuse_sequences(source)
        find = most_probable_products if self.may_be_empty else most_probable_non_empty
        return find(self.logits(tokens), n_sets, check_known(known, source))

    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        score = product_log_probs if self.may_be_empty else non_empty_log_probs
        return score(self.logits(tokens), label_sets)

    @property
    def may_be_empty(self) -> bool:
        """Whether a document may have no label."""
        return self.config.model.empty_sets != "off"

    @torch.inference_mode()
    def logits(self, tokens: Ragged) -> Floats32:
        """Return the log-odds of each label, (n, L)."""

        def score(rows: Rows, encoding: Encoding) -> Tensor:
            found: Tensor = self.network.decoder.logits(encoding)
            return found

        shape = (len(tokens), self.network.decoder.n_labels)
        return self.gather_values(tokens, np.zeros(shape, dtype=np.float32), score)
