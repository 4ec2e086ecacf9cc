"""Layouts without padding: the steps of many orders, the subsets of many sets.

A decoder evaluates all of them in one call.
"""

# B documents (or sets), K orders per document at most, S labels of the longest, R orders in all,
# N steps or subsets in all, Q steps of one document at most, V = labels + STOP

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from setrnn.data.batches import send


@dataclass(frozen=True)
class Steps:
    """Every step of every order, including STOP: first steps first, long orders first.

    This is the layout of a PackedSequence: no time is spent on padding.
    """

    orders: Tensor  # (R, S + 2) the longest first, with a -1 before, and padded with -1
    shape: tuple[int, int, int]  # (B, K, Q)
    n_rows: Tensor  # (S + 1,) on the CPU: the number of orders that have each step
    sequence: Tensor  # (R,) the place of each order among B K
    document: Tensor  # (R,)
    row: Tensor  # (N,) the order of each step, among R
    step: Tensor  # (N,) from 0
    place: Tensor  # (N,) among B Q

    @classmethod
    def of(cls, orders: Tensor, lengths: Tensor | None = None) -> Steps:
        """Lay out orders (B, K, S) of given lengths (B, K); a length of -1 means no order.

        Everything is computed on the CPU and sent at once: nothing waits for the GPU.
        """
        B, K, S = orders.shape
        if lengths is None:
            lengths = (orders >= 0).sum(2).cpu()
        n_steps = lengths + 1
        flat = lengths.flatten()
        sequence = flat.argsort(descending=True, stable=True)[: int((flat >= 0).sum())]
        length = flat[sequence]  # (R,)
        has_step = torch.arange(S + 1)[:, None] <= length  # (S + 1, R)
        step, row = has_step.nonzero(as_tuple=True)
        Q = int(n_steps.sum(1).max()) if B else 0
        # The orders of a document follow one another.
        before = (n_steps.cumsum(1) - n_steps).flatten()[sequence]  # (R,)
        place = (sequence // K * Q + before)[row] + step
        indices = (sequence, sequence // K, row, step, place)
        moved = send(torch.cat(indices), orders.device)
        moved_indices = torch.split(moved, [len(each) for each in indices])
        framed = nn.functional.pad(orders.flatten(0, 1), (1, 1), value=-1)[moved_indices[0]]
        n_rows = has_step.sum(1)
        return cls(framed, (B, K, Q), n_rows[n_rows > 0], *moved_indices)

    def previous(self, no_label_yet: int) -> Tensor:
        """Return the label before each step: (N,)."""
        label = self.orders[self.row, self.step]
        return label.where(label >= 0, no_label_yet)

    def targets(self, stop: int) -> Tensor:
        """Return the label or STOP that is emitted at each step: (N,)."""
        label = self.orders[self.row, self.step + 1]
        return label.where(label >= 0, stop)

    def used_labels(self, n_labels: int) -> Tensor:
        """Mark the labels that were emitted before each step, never STOP: (N, V)."""
        labels = self.orders[self.row]  # (N, S + 2)
        is_before = torch.arange(labels.shape[1], device=labels.device) <= self.step[:, None]
        return _mark(labels, is_before & (labels >= 0), n_labels)

    def by_document(self, values: Tensor) -> Tensor:
        """Group values (N, M) by document: (B, Q, M), padded with 0."""
        B, _, Q = self.shape
        grouped = values.new_zeros(B * Q, values.shape[1]).index_copy(0, self.place, values)
        return grouped.view(B, Q, values.shape[1])

    def by_step(self, grouped: Tensor) -> Tensor:
        """Return grouped values (B, Q, M) to one row per step: (N, M)."""
        return grouped.flatten(0, 1)[self.place]

    def sum_by_order(self, values: Tensor) -> Tensor:
        """Sum values (N,) over the steps of each order: (B, K), -inf where there is no order."""
        B, K, _ = self.shape
        sums = values.new_zeros(len(self.sequence)).index_add(0, self.row, values)
        return values.new_full((B * K,), -torch.inf).index_copy(0, self.sequence, sums).view(B, K)


@dataclass(frozen=True)
class Subsets:
    """Subsets of label sets, in blocks of documents that have equally many subsets each."""

    documents: Tensor  # (B,) the document of each set, in the order of the blocks
    blocks: list[tuple[int, int]]  # the number of documents, and of subsets per document
    rows: Tensor  # (N,) the set of each subset, in the order of the blocks
    labels: Tensor  # (N, S) the labels of the whole set, padded with any label
    is_member: Tensor  # (N, S) marks the labels that the subset has

    def used_labels(self, n_labels: int) -> Tensor:
        """Mark the labels of each subset, never STOP: (N, V)."""
        return _mark(self.labels, self.is_member, n_labels)


def _mark(labels: Tensor, is_used: Tensor, n_labels: int) -> Tensor:
    """Mark the labels (N, S) that are used, never STOP: (N, V)."""
    marks = torch.zeros(len(labels), n_labels + 1, dtype=torch.bool, device=labels.device)
    marks.scatter_(1, labels.where(is_used, n_labels), True)
    marks[:, n_labels] = False
    return marks
