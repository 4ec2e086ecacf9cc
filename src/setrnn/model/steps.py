"""The steps of many orders of different lengths, laid out without padding."""

# B documents, K orders a document at most, S labels of the longest, R orders in all, N steps in
# all, Q steps of one document at most, V = labels + STOP

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from setrnn.data.batches import send


@dataclass(frozen=True)
class Steps:
    """Every step of every order, STOP's included: first steps first, long orders first.

    That is the layout of a PackedSequence: no time is spent on what would be padding.
    """

    orders: Tensor  # (R, S + 2) the longest first; -1 stands before, behind, and fills up
    shape: tuple[int, int, int]  # (B, K, Q)
    n_rows: Tensor  # (S + 1,) on the CPU: how many orders have each step
    sequence: Tensor  # (R,) the place of each order among B K
    document: Tensor  # (R,)
    row: Tensor  # (N,) the order each step is of, among R
    step: Tensor  # (N,) from 0
    place: Tensor  # (N,) among B Q

    @classmethod
    def of(cls, orders: Tensor, lengths: Tensor | None = None) -> Steps:
        """Lay out orders (B, K, S) of these lengths (B, K), -1 for none.

        All is computed on the CPU and sent at once: a GPU is not waited for.
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
        # A document's orders stand behind one another.
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
        """Return what is emitted at each step: (N,)."""
        label = self.orders[self.row, self.step + 1]
        return label.where(label >= 0, stop)

    def used_labels(self, n_labels: int) -> Tensor:
        """Mark the labels that were emitted before each step; STOP never is: (N, V)."""
        labels = self.orders[self.row]  # (N, S + 2)
        is_before = torch.arange(labels.shape[1], device=labels.device) <= self.step[:, None]
        labels = labels.where(is_before & (labels >= 0), n_labels)
        is_used = torch.zeros(len(labels), n_labels + 1, dtype=torch.bool, device=labels.device)
        is_used.scatter_(1, labels, True)
        is_used[:, n_labels] = False
        return is_used

    def by_document(self, values: Tensor) -> Tensor:
        """Group values (N, M) by document: (B, Q, M), zero fills up."""
        B, _, Q = self.shape
        grouped = values.new_zeros(B * Q, values.shape[1]).index_copy(0, self.place, values)
        return grouped.view(B, Q, values.shape[1])

    def by_step(self, grouped: Tensor) -> Tensor:
        """Bring grouped values (B, Q, M) back: (N, M)."""
        return grouped.flatten(0, 1)[self.place]

    def sum_by_order(self, values: Tensor) -> Tensor:
        """Sum values (N,) over the steps of each order: (B, K), -inf where there is none."""
        B, K, _ = self.shape
        sums = values.new_zeros(len(self.sequence)).index_add(0, self.row, values)
        return values.new_full((B * K,), -torch.inf).index_copy(0, self.sequence, sums).view(B, K)
