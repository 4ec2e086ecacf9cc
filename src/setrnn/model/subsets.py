"""The subsets of many label sets, laid out so that one call evaluates them all."""

# B sets, S labels of the largest, N subsets in all, V = labels + STOP

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Subsets:
    """Subsets of label sets: in blocks of so many documents with so many subsets each."""

    documents: Tensor  # (B,) the document of each set, in the order of the blocks
    blocks: list[tuple[int, int]]  # how many documents, and how many subsets each has
    rows: Tensor  # (N,) which of the sets it is a subset of, in the order of the blocks
    labels: Tensor  # (N, S) the labels of the whole set; any label fills up
    is_member: Tensor  # (N, S) which of them the subset has

    def used_labels(self, n_labels: int) -> Tensor:
        """Mark the labels of each subset; STOP never is: (N, V)."""
        labels = self.labels.where(self.is_member, n_labels)
        is_used = torch.zeros(
            len(labels), n_labels + 1, dtype=torch.bool, device=labels.device
        ).scatter_(1, labels, True)
        is_used[:, n_labels] = False
        return is_used
