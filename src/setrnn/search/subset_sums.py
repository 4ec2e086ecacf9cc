"""p(set) over the subsets of the set, for decoders that forget the order: exact, or the best.

f({}) = 1,  f(S) = sum over l in S of f(S without l) p(l | x, S without l)
p(S) = f(S) p(STOP | x, S)
"""

# B sets, S labels of the largest, n labels of one, N subsets in all, t labels of a subset,
# R subsets of t labels in all, W subsets kept, Q of a set in all levels

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setrnn.data.batches import send
from setrnn.model.interfaces import Encoding, OrderFree
from setrnn.model.subsets import Subsets
from setrnn.search.lattice import merge_equal, take

EXACT_UP_TO = 10  # labels: 1,024 subsets
MOST_LABELS = 62  # of a set: a subset is the bits of a number
NOTHING = -1e30  # log 0, for sums with gradients: -inf would make them no numbers


def set_log_prob_by_subsets(
    decoder: OrderFree,
    encoding: Encoding,
    label_sets: Tensor,
    sizes: Tensor,
    width: int,
    exact_up_to: int = EXACT_UP_TO,
    documents: Tensor | None = None,
) -> Tensor:
    """Return log p of sets (B, S) that -1 fills up, of sizes (B,) on the CPU: (B,).

    Exact up to `exact_up_to` labels. Above it counts the paths through the best `width` subsets
    of each level alone: a lower bound. `documents` names the document of each set, (B,), where
    there is not one set a document.
    """
    if documents is None:
        documents = torch.arange(len(label_sets), device=label_sets.device)
    is_exact = sizes <= exact_up_to
    if is_exact.all():
        return _exact(decoder, encoding, documents, label_sets, sizes)
    parts, rows = [], []
    for sum_up, is_chosen in ((_exact, is_exact), (partial(_searched, width), ~is_exact)):
        chosen = is_chosen.nonzero()[:, 0]
        if len(chosen):
            row = send(chosen, label_sets.device)
            sets = label_sets[row, : int(sizes[chosen].max())]
            parts.append(sum_up(decoder, encoding, documents[row], sets, sizes[chosen]))
            rows.append(row)
    return torch.cat(parts).index_select(0, torch.cat(rows).argsort())


def _searched(
    width: int,
    decoder: OrderFree,
    encoding: Encoding,
    documents: Tensor,
    label_sets: Tensor,
    sizes: Tensor,
) -> Tensor:
    """Sum over the paths through the best subsets of each level."""
    some = encoding.rows(documents)
    levels = best_subsets(decoder, some, label_sets, sizes, width)
    return _through(decoder, some, label_sets, levels)


def _exact(
    decoder: OrderFree, encoding: Encoding, documents: Tensor, label_sets: Tensor, sizes: Tensor
) -> Tensor:
    """Sum over all subsets, level by level, for all sets at once."""
    plan = _Plan.of(sizes, label_sets.device)
    if not label_sets.shape[1]:
        label_sets = label_sets.new_zeros(len(label_sets), 1)
    ordered = label_sets.index_select(0, plan.order).clamp(min=0)
    subsets = plan.subsets(documents.index_select(0, plan.order), ordered)
    log_probs = decoder.after(encoding, subsets)  # (N, V)
    own = log_probs.gather(1, subsets.labels).flatten()  # (N S,)
    masses = own.new_zeros(len(sizes))  # of the subsets of t labels
    sums = [masses[: plan.n_whole[0]]]
    for t, (before, edge) in enumerate(plan.levels, start=1):
        paths = masses.index_select(0, before) + own.index_select(0, edge)
        masses = paths.view(-1, t).logsumexp(1)
        sums.append(masses[: plan.n_whole[t]])  # the smallest sets come first, and are whole now
    stops = log_probs[:, decoder.n_labels].index_select(0, plan.whole)
    return (torch.cat(sums) + stops).index_select(0, plan.place)


@dataclass(frozen=True)
class _Plan:
    """Where the subsets of sets of different sizes stand, and which lead to which."""

    order: Tensor  # (B,) the sets, the smallest first
    place: Tensor  # (B,) where each set stands in that order
    blocks: list[tuple[int, int]]  # sets of one size, subsets of each
    rows: Tensor  # (N,) the set of each subset, in that order
    is_member: Tensor  # (N, S) which labels it has
    # For each t, flat (R t,): the subsets that a subset of t labels comes from, among those of
    # t - 1 labels, and the labels it comes by, among the N S labels of all subsets.
    levels: list[tuple[Tensor, Tensor]]
    n_whole: list[int]  # the sets of t labels
    whole: Tensor  # (B,) the row of each whole set

    @classmethod
    def of(cls, sizes: Tensor, device: torch.device) -> _Plan:
        """Lay out the subsets of sets of these sizes (B,); all on the CPU, and sent at once."""
        set_sizes = sizes.numpy()
        largest = int(set_sizes.max(initial=0))
        S = max(largest, 1)
        n_whole = np.bincount(set_sizes, minlength=largest + 1).tolist()
        order = np.argsort(set_sizes, kind="stable")
        place = np.argsort(order)
        n_subsets = 2 ** set_sizes[order]
        present = [n for n in range(largest + 1) if n_whole[n]]
        first_row = np.cumsum([0, *(n_whole[n] * 2**n for n in range(largest + 1))])
        levels = [_level(t, present, n_whole, first_row, S) for t in range(1, largest + 1)]
        flat = [order, place, np.repeat(np.arange(len(order)), n_subsets), np.cumsum(n_subsets) - 1]
        flat += [each for level in levels for each in level]
        moved = send(torch.from_numpy(np.concatenate(flat)), device)
        parts = torch.split(moved, [len(each) for each in flat])
        is_member = np.zeros((len(flat[2]), S), dtype=bool)
        for n in present:
            rows = slice(first_row[n], first_row[n + 1])
            is_member[rows, :n] = np.tile(_table(n).is_member, (n_whole[n], 1))
        return cls(
            order=parts[0],
            place=parts[1],
            blocks=[(n_whole[n], 2**n) for n in present],
            rows=parts[2],
            is_member=send(torch.from_numpy(is_member), device),
            levels=list(zip(parts[4::2], parts[5::2], strict=True)),
            n_whole=n_whole,
            whole=parts[3],
        )

    def subsets(self, documents: Tensor, labels: Tensor) -> Subsets:
        """Return the subsets of the sets (B, S) of documents (B,), which are in this order."""
        of_subset = labels[:, : self.is_member.shape[1]].index_select(0, self.rows)
        return Subsets(documents, self.blocks, self.rows, of_subset, self.is_member)


def _level(
    t: int, present: list[int], n_whole: list[int], first_row: npt.NDArray[np.int64], S: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where the subsets of t labels come from, for the sets of all sizes: see _Plan."""
    before, edges = [], []
    first = sum(n_whole[n] for n in present if n == t - 1)  # whole already, and before the others
    for n in present:
        if n >= t:
            table, sets = _table(n), np.arange(n_whole[n])[:, None]
            before.append((first + sets * comb(n, t - 1) + table.before[t]).ravel())
            from_rows = first_row[n] + sets * 2**n + table.rows[t]
            edges.append((from_rows * S + table.slots[t]).ravel())
            first += n_whole[n] * comb(n, t - 1)
    return np.concatenate(before), np.concatenate(edges)


@dataclass(frozen=True)
class _Table:
    """The subsets of n labels, those of fewer labels first."""

    is_member: npt.NDArray[np.bool_]  # (2^n, n)
    before: list[npt.NDArray[np.int64]]  # for each t, (C t,): whence, among those of t - 1 labels
    rows: list[npt.NDArray[np.int64]]  # the same among all
    slots: list[npt.NDArray[np.int64]]  # the label it comes by


@lru_cache(maxsize=64)
def _table(n: int) -> _Table:
    levels = [list(combinations(range(n), t)) for t in range(n + 1)]
    is_member = np.zeros((2**n, n), dtype=bool)
    place_of: dict[tuple[int, ...], tuple[int, int]] = {}
    for level in levels:
        for place, chosen in enumerate(level):
            row = len(place_of)
            is_member[row, list(chosen)] = True
            place_of[chosen] = (place, row)
    before, rows, slots = [], [], []
    for level in levels:
        whence = [
            (*place_of[chosen[:slot] + chosen[slot + 1 :]], chosen[slot])
            for chosen in level
            for slot in range(len(chosen))
        ]
        columns = np.array(whence, dtype=np.int64).reshape(-1, 3).T
        before.append(columns[0])
        rows.append(columns[1])
        slots.append(columns[2])
    return _Table(is_member, before, rows, slots)


@torch.no_grad()
def best_subsets(
    decoder: OrderFree, encoding: Encoding, label_sets: Tensor, sizes: Tensor, width: int
) -> list[Tensor]:
    """Search the subsets of given sets (B, S): the best of each level, as bit masks (B, W).

    A subset's mass is the sum over all orders that reached it; -1 where there are fewer than W.
    """
    B, S = label_sets.shape
    assert S <= MOST_LABELS, "larger sets are refused before"
    was_training = decoder.training
    decoder.train(False)  # the search is without dropout's noise
    is_label = label_sets >= 0
    columns = label_sets.clamp(min=0)[:, None]  # (B, 1, S)
    bits = 1 << torch.arange(S, device=label_sets.device)
    masks = label_sets.new_zeros(B, 1)
    mass = torch.zeros(B, 1, device=label_sets.device)
    state = decoder.start(encoding)
    previous = label_sets.new_full((B, 1), decoder.n_labels)
    levels = [masks]
    for t in range(int(sizes.max())):
        log_probs, state = decoder.step(encoding, state, previous)  # (B, W, V)
        W = masks.shape[1]
        own = log_probs.gather(2, columns.expand(-1, W, -1))
        grown = (mass[..., None] + own).masked_fill(~is_label[:, None], -torch.inf)
        keys = (masks[..., None] | bits).flatten(1)
        n_kept = min(width, W * S, comb(S, t + 1))
        mass, chosen = merge_equal(keys, grown.flatten(1), n_kept)
        masks = keys.gather(1, chosen).masked_fill(mass == -torch.inf, -1)
        parent, slot = chosen // S, chosen % S
        previous = label_sets.gather(1, slot).clamp(min=0)
        state = tuple(take(each, parent) for each in state)
        levels.append(masks)
    decoder.train(was_training)
    return levels


def _through(
    decoder: OrderFree, encoding: Encoding, label_sets: Tensor, levels: list[Tensor]
) -> Tensor:
    """Sum over the paths through the subsets of each level, with gradients: (B,)."""
    B, S = label_sets.shape
    device = label_sets.device
    bits = 1 << torch.arange(S, device=device)
    masks = torch.cat(levels, dim=1)  # (B, Q)
    Q = masks.shape[1]
    is_member = ((masks[..., None] & bits) > 0) & (masks >= 0)[..., None]  # (B, Q, S)
    labels = label_sets.clamp(min=0)[:, None].expand(-1, Q, -1)
    every = torch.arange(B, device=device)
    rows = every.repeat_interleave(Q, output_size=B * Q)
    subsets = Subsets(every, [(B, Q)], rows, labels.flatten(0, 1), is_member.flatten(0, 1))
    log_probs = decoder.after(encoding, subsets).view(B, Q, -1)
    own = log_probs.gather(2, labels)
    widths = [each.shape[1] for each in levels]
    mass = own.new_zeros(B, 1)
    masses = [mass]
    for before, now, of_before in zip(
        levels, levels[1:], torch.split(own, widths, dim=1), strict=False
    ):
        # A child comes from a parent by the one label that is new.
        is_edge = (now[:, :, None, None] == (before[:, None, :, None] | bits)) & (
            (before[:, None, :, None] & bits) == 0
        )
        is_edge &= (before >= 0)[:, None, :, None] & (now >= 0)[:, :, None, None]
        paths = (mass[:, None, :, None] + of_before[:, None]).where(is_edge, NOTHING)
        mass = paths.flatten(2).logsumexp(2)  # (B, W)
        masses.append(mass)
    # The whole set is the one node of its level.
    stops = torch.split(log_probs[..., decoder.n_labels], widths, dim=1)
    is_label = label_sets >= 0
    full = (bits * is_label).sum(1, keepdim=True)
    ends = [
        (each + stop).where(mask == full, NOTHING)
        for each, stop, mask in zip(masses, stops, levels, strict=True)
    ]
    return torch.cat(ends, dim=1).logsumexp(1)
