"""Every label by itself: one logit per label, from the summary and the evidence for the label."""

# B documents, M memory size, L labels

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import ClassVar

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.model.devices import without_values
from setrnn.model.interfaces import Encoding


class SigmoidDecoder(nn.Module):
    """Scores the labels of a document, which are independent given the document."""

    emits: ClassVar[str] = "labels"

    def __init__(self, memory_size: int, label_vectors: Tensor, settings: ModelSettings) -> None:
        super().__init__()
        self.n_labels = len(label_vectors)
        self.output = nn.Linear(memory_size, self.n_labels)
        with torch.no_grad():  # before training a document has about one label, not half of all
            self.output.bias.fill_(-log(self.n_labels))

    @classmethod
    def from_weights(
        cls, weights: Mapping[str, Tensor], memory_size: int, settings: ModelSettings
    ) -> SigmoidDecoder:
        """Build the decoder in the shape of saved weights; their values are assigned later."""
        with without_values():
            return cls(memory_size, torch.empty(len(weights["output.weight"]), 0), settings)

    def logits(self, encoding: Encoding) -> Tensor:
        """Return the log-odds of each label: (B, L)."""
        logits: Tensor = self.output(encoding.summary).float()  # the summary had dropout before
        return logits if encoding.evidence is None else logits + encoding.evidence[:, :-1]
