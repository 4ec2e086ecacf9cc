"""p(set) as a sum over the subsets of the set, for decoders that ignore the order.

The sum is exact, or over the best subsets of each size.

f({}) = 1,  f(S) = sum over l in S of f(S without l) p(l | x, S without l)
p(S) = f(S) p(STOP | x, S)
"""

# B sets, S labels of the largest, n labels of one, N subsets in all, t labels of a subset,
# R subsets of t labels in all, W subsets kept, Q of a set in all levels; sets are padded with -1

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations, pairwise
from math import comb

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from setrnn.data.batches import send
from setrnn.model.dropout import without_dropout
from setrnn.model.interfaces import Encoding, OrderFree
from setrnn.model.layouts import Subsets
from setrnn.search.beam_search import take
from setrnn.search.lattice import draw_label_keys, merge_equal
from setrnn.search.replayed import replay

EXACT_UP_TO = 10  # labels: 1,024 subsets
MOST_LABELS = 62  # in a set: the bits of a number mark a subset
NOTHING = -1e30  # log 0, for sums with gradients: -inf would make them NaN


def set_log_prob_by_subsets(
    decoder: OrderFree,
    encoding: Encoding,
    label_sets: Tensor,
    sizes: Tensor,
    width: int,
    exact_up_to: int = EXACT_UP_TO,
    documents: Tensor | None = None,
) -> Tensor:
    """Return log p of sets (B, S), padded with -1, of sizes (B,) on the CPU: (B,).

    It is exact up to `exact_up_to` labels. For larger sets it counts only the paths through the
    best `width` subsets of each size: a lower bound. `documents` (B,) is the document of each
    set, unless there is one set per document.
    """
    if documents is None:
        documents = torch.arange(len(label_sets), device=label_sets.device)
    is_exact = sizes <= exact_up_to
    if is_exact.all():
        return _sum_exact(decoder, encoding, documents, label_sets, sizes)
    parts, rows = [], []
    for sum_up, is_chosen in ((_sum_exact, is_exact), (partial(_sum_searched, width), ~is_exact)):
        chosen = is_chosen.nonzero()[:, 0]
        if len(chosen):
            row = send(chosen, label_sets.device)
            sets = label_sets[row, : int(sizes[chosen].max())]
            parts.append(sum_up(decoder, encoding, documents[row], sets, sizes[chosen]))
            rows.append(row)
    return torch.cat(parts).index_select(0, torch.cat(rows).argsort())


def _sum_searched(
    width: int,
    decoder: OrderFree,
    encoding: Encoding,
    documents: Tensor,
    label_sets: Tensor,
    sizes: Tensor,
) -> Tensor:
    """Sum over the paths through the best subsets of each size."""
    some = encoding.rows(documents)
    levels = best_subsets(decoder, some, label_sets, sizes, width)
    return _sum_through(decoder, some, label_sets, levels)


def _sum_exact(
    decoder: OrderFree, encoding: Encoding, documents: Tensor, label_sets: Tensor, sizes: Tensor
) -> Tensor:
    """Sum over all subsets, level by level, for all sets at once."""
    plan = _Plan.of(sizes, label_sets.device)
    if not label_sets.shape[1]:
        label_sets = label_sets.new_zeros(len(label_sets), 1)
    ordered = label_sets.index_select(0, plan.order).clamp(min=0)
    subsets = plan.subsets(documents.index_select(0, plan.order), ordered)
    # A CPU computes the subsets that several sets of a document share once.
    is_shared = len(plan.order) > len(encoding.memory) and not label_sets.is_cuda
    if is_shared and not torch.is_grad_enabled():
        distinct, place = subsets.distinct(draw_label_keys(decoder.n_labels, label_sets.device))
        log_probs = decoder.after(encoding, distinct)  # (M, V)
        own = log_probs[place[:, None], subsets.labels].flatten()
        whole = place[plan.whole]
    else:
        log_probs, whole = decoder.after(encoding, subsets), plan.whole  # (N, V)
        own = log_probs.gather(1, subsets.labels).flatten()  # (N S,)
    masses = own.new_zeros(len(sizes))  # of the subsets of t labels
    sums = [masses[: plan.n_whole[0]]]
    for t, (before, edge) in enumerate(plan.levels, start=1):
        paths = masses.index_select(0, before) + own.index_select(0, edge)
        masses = paths.view(-1, t).logsumexp(1)
        sums.append(masses[: plan.n_whole[t]])  # the smallest sets come first, and are complete now
    stops = log_probs[:, decoder.n_labels].index_select(0, whole)
    return (torch.cat(sums) + stops).index_select(0, plan.place)


@dataclass(frozen=True)
class _Plan:
    """The places of the subsets of sets of different sizes, and the steps between them."""

    order: Tensor  # (B,) the sets, the smallest first
    place: Tensor  # (B,) the place of each set in that order
    blocks: list[tuple[int, int]]  # sets of one size, subsets of each
    rows: Tensor  # (N,) the set of each subset, in that order
    is_member: Tensor  # (N, S) the labels of each subset
    # For each t, flat (R t,): the subsets of t - 1 labels that precede each subset of t labels,
    # and the label that is added, among the N S labels of all subsets.
    levels: list[tuple[Tensor, Tensor]]
    n_whole: list[int]  # the number of sets of t labels
    whole: Tensor  # (B,) the row of each whole set

    @classmethod
    def of(cls, sizes: Tensor, device: torch.device) -> _Plan:
        """Lay out the subsets of sets of given sizes (B,), on the CPU, and send all at once."""
        set_sizes = sizes.numpy()
        largest = int(set_sizes.max(initial=0))
        S = max(largest, 1)
        n_whole = np.bincount(set_sizes, minlength=largest + 1).tolist()
        order = np.argsort(set_sizes, kind="stable")
        place = np.argsort(order)
        n_subsets = 2 ** set_sizes[order]
        present = [n for n in range(largest + 1) if n_whole[n]]
        first_row = np.cumsum([0, *(n_whole[n] * 2**n for n in range(largest + 1))])
        levels = [_list_steps(t, present, n_whole, first_row, S) for t in range(1, largest + 1)]
        flat = [order, place, np.repeat(np.arange(len(order)), n_subsets), np.cumsum(n_subsets) - 1]
        flat += [each for level in levels for each in level]
        moved = send(torch.from_numpy(np.concatenate(flat)), device)
        parts = torch.split(moved, [len(each) for each in flat])
        is_member = np.zeros((len(flat[2]), S), dtype=bool)
        for n in present:
            rows = slice(first_row[n], first_row[n + 1])
            is_member[rows, :n] = np.tile(_list_subsets(n).is_member, (n_whole[n], 1))
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
        """Return the subsets of sets (B, S) of documents (B,), both in the order of the plan."""
        of_subset = labels[:, : self.is_member.shape[1]].index_select(0, self.rows)
        return Subsets(documents, self.blocks, self.rows, of_subset, self.is_member)


def _list_steps(
    t: int, present: list[int], n_whole: list[int], first_row: npt.NDArray[np.int64], S: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the steps to the subsets of t labels, for sets of all sizes: see _Plan.levels."""
    before, edges = [], []
    first = sum(n_whole[n] for n in present if n == t - 1)  # complete, and first
    for n in present:
        if n >= t:
            table, sets = _list_subsets(n), np.arange(n_whole[n])[:, None]
            before.append((first + sets * comb(n, t - 1) + table.before[t]).ravel())
            from_rows = first_row[n] + sets * 2**n + table.rows[t]
            edges.append((from_rows * S + table.slots[t]).ravel())
            first += n_whole[n] * comb(n, t - 1)
    return np.concatenate(before), np.concatenate(edges)


@dataclass(frozen=True)
class _Table:
    """The subsets of n labels, those of fewer labels first."""

    is_member: npt.NDArray[np.bool_]  # (2^n, n)
    # For each t, (C t,), of each step to a subset of t labels:
    before: list[npt.NDArray[np.int64]]  # the subset it starts from, among those of t - 1 labels
    rows: list[npt.NDArray[np.int64]]  # the same, among all subsets
    slots: list[npt.NDArray[np.int64]]  # the label that is added


@lru_cache(maxsize=64)
def _list_subsets(n: int) -> _Table:
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
        steps = [
            (*place_of[chosen[:slot] + chosen[slot + 1 :]], chosen[slot])
            for chosen in level
            for slot in range(len(chosen))
        ]
        columns = np.array(steps, dtype=np.int64).reshape(-1, 3).T
        before.append(columns[0])
        rows.append(columns[1])
        slots.append(columns[2])
    return _Table(is_member, before, rows, slots)


@torch.no_grad()
def best_subsets(
    decoder: OrderFree, encoding: Encoding, label_sets: Tensor, sizes: Tensor, width: int
) -> list[Tensor]:
    """Search the subsets of given sets (B, S): the best of each size, as bit masks (B, W).

    The mass of a subset is the sum over all orders that reached it. Masks are padded with -1.
    """
    S = label_sets.shape[1]
    assert S <= MOST_LABELS, "larger sets are refused before"
    with without_dropout(decoder):
        found = replay(_search_subsets, decoder, encoding, label_sets, width)
    return [found[:, t, : min(width, comb(S, t))] for t in range(int(sizes.max()) + 1)]


def _search_subsets(
    decoder: OrderFree, encoding: Encoding, label_sets: Tensor, width: int
) -> Tensor:
    """Return the best subsets of 0 ... S labels of sets (B, S), as bit masks: (B, S + 1, W)."""
    B, S = label_sets.shape
    is_label = label_sets >= 0
    columns = label_sets.clamp(min=0)[:, None]  # (B, 1, S)
    bits = 1 << torch.arange(S, device=label_sets.device)
    masks = label_sets.new_zeros(B, 1)
    mass = torch.zeros(B, 1, device=label_sets.device)
    state = decoder.start(encoding)
    previous = label_sets.new_full((B, 1), decoder.n_labels)
    levels = [masks]
    for t in range(S):
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
    filled = [nn.functional.pad(each, (0, width - each.shape[1]), value=-1) for each in levels]
    return torch.stack(filled, dim=1)


def _sum_through(
    decoder: OrderFree, encoding: Encoding, label_sets: Tensor, levels: list[Tensor]
) -> Tensor:
    """Sum over the paths through the subsets of each size, with gradients: (B,)."""
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
    is_step = _find_steps(levels, bits)
    of_levels = torch.split(own, widths, dim=1)
    for t, (before, now) in enumerate(pairwise(levels)):
        is_edge = is_step[:, t, : now.shape[1], : before.shape[1]]
        paths = (mass[:, None, :, None] + of_levels[t][:, None]).where(is_edge, NOTHING)
        mass = paths.flatten(2).logsumexp(2)  # (B, W)
        masses.append(mass)
    # The whole set is the only node of its level.
    stops = torch.split(log_probs[..., decoder.n_labels], widths, dim=1)
    is_label = label_sets >= 0
    full = (bits * is_label).sum(1, keepdim=True)
    ends = [
        (each + stop).where(mask == full, NOTHING)
        for each, stop, mask in zip(masses, stops, levels, strict=True)
    ]
    return torch.cat(ends, dim=1).logsumexp(1)


def _find_steps(levels: list[Tensor], bits: Tensor) -> Tensor:
    """Mark where a subset of t + 1 labels is one of t labels and the label of a bit, for all t.

    Levels are masks (B, W), bits (S,); the marks are (B, T, W, W, S): of each subset of t + 1
    labels, from each of t labels.
    """
    W = max(each.shape[1] for each in levels)
    masks = torch.stack(
        [nn.functional.pad(each, (0, W - each.shape[1]), value=-1) for each in levels], dim=1
    )
    before, now = masks[:, :-1, None, :, None], masks[:, 1:, :, None, None]
    return (now == (before | bits)) & ((before & bits) == 0) & (before >= 0)
