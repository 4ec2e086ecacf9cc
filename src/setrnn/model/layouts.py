"""Layouts without padding: the steps of many orders, the subsets of many sets.

A decoder evaluates all of them in one call.
"""

# B documents (or sets), K orders per document at most, S labels of the longest, R orders in all,
# N steps or subsets in all, Q steps of one document at most, V = labels + STOP

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from setrnn.data.batches import send

DOCUMENT_KEY = 0x1E3779B97F4A7C15  # a large odd number


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
class Prefixes:
    """The distinct prefixes of the orders of each document, the shortest first.

    A prefix that several orders share is one row. The first B rows are the documents, before any
    label. It is for a CPU, which spends its time on arithmetic.
    """

    parents: list[tuple[Tensor, Tensor]]  # of each length but 0: see `Prefixes.of`
    label: Tensor  # (N,) the last label; L for none
    document: Tensor  # (N,)
    is_used: Tensor  # (N, V) the labels of the prefix, never STOP
    place: Tensor  # (P,) for each step of each order, what it emits after which row: among N V
    order: Tensor  # (P,) the order of each step, among R
    sequence: Tensor  # (R,) the place of each order among B K
    shape: tuple[int, int]  # (B, K)

    @classmethod
    def of(cls, orders: Tensor, lengths: Tensor, stop: int) -> Prefixes:
        """Find the prefixes of orders (B, K, S) of lengths (B, K); -1 means no order.

        The parents of the prefixes of a length are two tensors: the rows of the length before
        that are continued, and the place of each prefix's parent among these.
        """
        B, K, S = orders.shape
        sequence = (lengths.flatten() >= 0).nonzero()[:, 0]
        length, labels = lengths.flatten()[sequence], orders.flatten(0, 1)[sequence]
        emitted = nn.functional.pad(labels, (0, 1), value=-1)  # (R, S + 1)
        emitted = emitted.where(emitted >= 0, stop)
        is_used = torch.zeros(B, stop + 1, dtype=torch.bool)
        levels = [(torch.full((B,), stop), torch.arange(B), is_used)]
        order, row = torch.arange(len(sequence)), sequence // K  # those that have step t
        parents, places, owners, n_before = [], [], [], 0
        for t in range(S + 1):
            _, documents, is_used = levels[-1]
            target = emitted[order, t]
            places.append((n_before + row) * (stop + 1) + target)
            owners.append(order)
            is_open = length[order] > t
            order = order[is_open]
            if not len(order):
                break
            keys = row[is_open] * stop + target[is_open]
            keys, place = torch.unique(keys, return_inverse=True)
            parent, label = keys // stop, keys % stop
            parents.append(torch.unique(parent, return_inverse=True))
            is_used = is_used[parent].scatter_(1, label[:, None], True)
            n_before += len(documents)
            levels.append((label, documents[parent], is_used))
            row = place
        label, document, is_used = (torch.cat(parts) for parts in zip(*levels, strict=True))
        indices = torch.cat(places), torch.cat(owners), sequence
        return cls(parents, label, document, is_used, *indices, (B, K))

    def by_length(self, values: Tensor) -> tuple[Tensor, ...]:
        """Split values (N, M) of all prefixes."""
        sizes = [self.shape[0], *(len(place) for _, place in self.parents)]
        return torch.split(values, sizes)

    def by_document(self, values: Tensor) -> Tensor:
        """Group values (N, M) by document, the shortest prefix first: (B, Q, M), padded with 0.

        It is for one order per document.
        """
        B, Q = self.shape[0], 1 + len(self.parents)
        levels = self.by_length(torch.arange(len(values)))
        length = torch.cat([torch.full_like(each, n) for n, each in enumerate(levels)])
        grouped = values.new_zeros(B * Q, values.shape[1])
        return grouped.index_copy(0, self.document * Q + length, values).view(B, Q, -1)

    def sum_by_order(self, log_probs: Tensor) -> Tensor:
        """Sum log-probabilities (N, V) over the steps of each order: (B, K), -inf for no order."""
        B, K = self.shape
        steps = log_probs.flatten().index_select(0, self.place)
        sums = steps.new_zeros(len(self.sequence)).index_add(0, self.order, steps)
        return steps.new_full((B * K,), -torch.inf).index_copy(0, self.sequence, sums).view(B, K)


@dataclass(frozen=True)
class Subsets:
    """Subsets of label sets, in blocks of documents that have equally many subsets each."""

    documents: Tensor  # (B,) the document of each set, in the order of the blocks
    blocks: list[tuple[int, int]]  # the number of documents, and of subsets per document
    rows: Tensor  # (N,) the set of each subset, in the order of the blocks
    labels: Tensor  # (N, S) the labels of the whole set, padded with any label
    is_member: Tensor  # (N, S) marks the labels that the subset has
    is_distinct: bool = False  # whether the subsets of a document are of several sets

    def distinct(self, label_keys: Tensor) -> tuple[Subsets, Tensor]:
        """Return the distinct subsets of each document, and the place of each subset, (N,).

        The sums of the keys of labels, (L,), tell sets apart.
        """
        document = self.documents[self.rows]
        keys = (label_keys[self.labels] * self.is_member).sum(1) + document * DOCUMENT_KEY
        _, first, number = np.unique(keys.numpy(), return_index=True, return_inverse=True)
        order = np.argsort(document.numpy()[first], kind="stable")
        chosen = torch.from_numpy(first[order])
        documents, rows, counts = torch.unique_consecutive(
            document[chosen], return_inverse=True, return_counts=True
        )
        blocks = [(1, n) for n in counts.tolist()]
        found = Subsets(documents, blocks, rows, self.labels[chosen], self.is_member[chosen], True)
        return found, torch.from_numpy(np.argsort(order)[number])

    def used_labels(self, n_labels: int) -> Tensor:
        """Mark the labels of each subset, never STOP: (N, V)."""
        return _mark(self.labels, self.is_member, n_labels)

    def sum_labels(self, values: Tensor) -> Tensor:
        """Sum the values (V, M) of the labels of each subset: (N, M)."""
        if self.labels.is_cuda:  # one large product
            return self.used_labels(len(values) - 1).to(values.dtype) @ values
        if self.is_distinct:
            members = self.labels.where(self.is_member, len(values) - 1)  # the last is 0
            return nn.functional.embedding_bag(members, values, mode="sum")
        parts, row = [], 0
        for n_documents, n_subsets in self.blocks:
            rows = slice(row, row + n_documents * n_subsets)
            marks = self.is_member[rows].view(n_documents, n_subsets, -1).to(values.dtype)
            labels = self.labels[rows][::n_subsets]  # (B, S) all subsets of a set have its labels
            of_labels = values.index_select(0, labels.flatten()).view(*labels.shape, -1)
            parts.append((marks @ of_labels).flatten(0, 1))
            row = rows.stop
        return torch.cat(parts)


def _mark(labels: Tensor, is_used: Tensor, n_labels: int) -> Tensor:
    """Mark the labels (N, S) that are used, never STOP: (N, V)."""
    marks = torch.zeros(len(labels), n_labels + 1, dtype=torch.bool, device=labels.device)
    marks.scatter_(1, labels.where(is_used, n_labels), True)
    marks[:, n_labels] = False
    return marks
