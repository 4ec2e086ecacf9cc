"""Every label by itself: one logit a label, from the summary of the document."""

# B documents, M memory size, L labels

from __future__ import annotations

from math import log

import torch
from torch import Tensor, nn

from setrnn.config import ModelSettings
from setrnn.model.interfaces import Encoding


class SigmoidDecoder(nn.Module):
    """Scores the labels of a document; given the document, they are independent."""

    def __init__(self, memory_size: int, label_vectors: Tensor, settings: ModelSettings) -> None:
        super().__init__()
        self.n_labels = len(label_vectors)
        self.output = nn.Linear(memory_size, self.n_labels)
        with torch.no_grad():  # a document begins with about one label, not with half of them
            self.output.bias.fill_(-log(self.n_labels))

    def logits(self, encoding: Encoding) -> Tensor:
        """Return the log-odds of each label: (B, L)."""
        logits: Tensor = self.output(encoding.summary)  # it went through dropout already
        return logits.float()
