"""One search over label sets, for decoders that ignore the order: equal sets are one node.

The mass of a node is the sum over all orders that reached it. The result has a certificate.
"""

# B documents, W nodes kept, L labels, V = labels + STOP, K sets, S labels of the largest,
# X candidates for the next level, R sets with exact sums

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import torch
from torch import Tensor, nn

from setrnn.model.interfaces import Encoding, OrderFree
from setrnn.search.beam_search import take
from setrnn.search.label_probs import Emissions
from setrnn.search.set_search import Certificate, ScoredSets

ROUNDING = 1e-6  # error of a sum of probabilities
CANDIDATES_PER_NODE = 4  # this many times the width are merged; smaller ones count as pruned


@torch.no_grad()
def search_sets(
    decoder: OrderFree,
    encoding: Encoding,
    width: int,
    max_labels: int,
    n_sets: int = 1,
    estimate_labels: bool = True,
) -> ScoredSets:
    """Find the most probable sets, level by level: the empty set, sets of one label, of two ...

    A document is finished when the whole mass of its next level is less than that of the last of
    the `n_sets` best: only sets that were pruned could then be among the best. The probabilities
    of labels are estimated on request. A CPU leaves out the finished documents.
    """
    B, stop, device = len(encoding.memory), decoder.n_labels, encoding.memory.device
    max_labels = min(max_labels, stop)
    label_keys = draw_label_keys(stop, device)
    state = decoder.start(encoding)
    previous = torch.full((B, 1), stop, device=device)
    mass, keys = torch.zeros(B, 1, device=device), torch.zeros_like(previous)
    labels = previous.new_empty((B, 1, 0))
    found = _Found(B, n_sets, device)
    emissions = Emissions(B, stop, device) if estimate_labels else None
    for n_emitted in range(max_labels + 1):
        log_probs, state = decoder.step(encoding, state, previous)  # (B, W, V)
        if emissions is not None:
            emissions.add(mass, log_probs, labels, partial(found.spread, other=0.0))
        log_stop = log_probs[..., stop]
        found.add(labels, mass + log_stop)
        if n_emitted == max_labels:
            found.look(mass + torch.log1p(-log_stop.exp()))
            break
        # Every node with every label added; equal sets become one node.
        grown = (mass[..., None] + log_probs[..., :stop]).flatten(1)  # (B, W L)
        grown, best = grown.topk(min(CANDIDATES_PER_NODE * width, grown.shape[1]), dim=1)  # (B, X)
        parent, label = best // stop, best % stop
        grown_keys = keys.gather(1, parent) + label_keys[label]
        mass, chosen = merge_equal(grown_keys, grown, min(width, grown.shape[1]))  # (B, W)
        is_done = found.look(mass)
        if is_done.all():
            break
        mass = mass.masked_fill(is_done[:, None], -torch.inf)
        keys = grown_keys.gather(1, chosen)
        parent, previous = parent.gather(1, chosen), label.gather(1, chosen)
        labels = torch.cat((take(labels, parent), previous[..., None]), dim=2)
        state = tuple(take(each, parent) for each in state)
        if device.type == "cpu" and 4 * int(is_done.sum()) > len(is_done):  # copies pay off
            is_open = ~is_done
            found.keep(is_open)
            encoding = encoding.rows(is_open.nonzero()[:, 0])
            mass, keys = mass[is_open], keys[is_open]
            previous, labels = previous[is_open], labels[is_open]
            state = tuple(each[is_open] for each in state)
    label_probs = None if emissions is None else emissions.finish(max_labels + 1)
    return replace(found.finish(max(width, n_sets)), label_probs=label_probs)


def merge_equal(keys: Tensor, log_masses: Tensor, n_kept: int) -> tuple[Tensor, Tensor]:
    """Add up the masses (B, X) of equal keys (B, X), and keep the largest sums.

    Returns the sums (B, W) in descending order, -inf for none, and the place of one of each
    sum's keys, (B, W).
    """
    largest = log_masses.amax(1, keepdim=True).clamp(min=-1e30)
    shares = (log_masses - largest).exp()
    is_equal = keys[:, :, None] == keys[:, None]  # (B, X, X)
    sums = torch.where(is_equal, shares[:, None], 0.0).sum(2)
    is_repeat = is_equal.tril(-1).any(2)
    sums, best = sums.masked_fill(is_repeat, 0.0).topk(n_kept, dim=1)
    return largest + sums.log(), best


class _Found:
    """The sets found so far, and the documents that are finished."""

    def __init__(self, B: int, n_wanted: int, device: torch.device) -> None:
        self.labels: list[Tensor] = []  # per level (B, W, S), in the order of emission
        self.log_probs: list[Tensor] = []  # (B, W)
        self.best = torch.full((B, n_wanted), -torch.inf, device=device)
        self.frontier = torch.zeros(B, device=device)  # mass of the level after the last
        self.is_done = torch.zeros(B, dtype=torch.bool, device=device)
        self.kept: Tensor | None = None  # the documents that are still searched; None for all

    def keep(self, is_open: Tensor) -> None:
        """Expect only these of the current documents from now on."""
        kept = (
            torch.arange(len(self.is_done), device=is_open.device)
            if self.kept is None
            else self.kept
        )
        self.kept = kept[is_open]

    def add(self, labels: Tensor, log_probs: Tensor) -> None:
        """Add the sets of a level, (B, W, S) with log p (B, W)."""
        labels, log_probs = self.spread(labels, -1), self.spread(log_probs, -torch.inf)
        self.labels.append(labels)
        self.log_probs.append(log_probs)
        n_wanted = self.best.shape[1]
        self.best = torch.cat((self.best, log_probs), dim=1).topk(n_wanted, dim=1).values

    def look(self, log_mass: Tensor) -> Tensor:
        """Decide which documents are finished, (B,), by the masses (B, W) of the next level."""
        left = self.spread(log_mass.exp().sum(1), 0.0)
        self.frontier = self.frontier.where(self.is_done, left)
        self.is_done = self.is_done | (left < self.best[:, -1].exp())
        return self.is_done if self.kept is None else self.is_done[self.kept]

    def spread(self, values: Tensor, other: float) -> Tensor:
        """Give the documents that are not searched any more another value."""
        if self.kept is None:
            return values
        every = values.new_full((len(self.is_done), *values.shape[1:]), other)
        return every.index_copy(0, self.kept, values)

    def finish(self, n_kept: int) -> ScoredSets:
        """Rank the sets of all levels, keep the best, and say what is proved."""
        S = self.labels[-1].shape[2]
        padded = [nn.functional.pad(each, (0, S - each.shape[2]), value=-1) for each in self.labels]
        every = torch.cat(self.log_probs, dim=1)
        log_probs, best = every.topk(min(n_kept, every.shape[1]), dim=1)
        dropped = every.scatter(1, best, -torch.inf).amax(1)
        labels = take(torch.cat(padded, dim=1), best)
        last = torch.iinfo(labels.dtype).max
        is_label = (labels >= 0) & (log_probs > -torch.inf)[..., None]
        labels = labels.where(is_label, last).sort(dim=2).values
        pruned = (1 - every.exp().sum(1) - self.frontier).clamp(min=0)
        most = torch.logaddexp(log_probs, pruned.log()[:, None])
        certificate = _certify(log_probs, most, pruned, self.frontier, dropped)
        return ScoredSets(labels.where(labels < last, -1), log_probs, certificate=certificate)


def rank_by_exact(found: ScoredSets, exact: Tensor, is_exact: Tensor) -> ScoredSets:
    """Rank sets again, given log p of the first R of each document, (B, R).

    `is_exact` marks the exact ones; the others are lower bounds. What a set gains was pruned
    before: no other set can have it.
    """
    assert found.certificate is not None
    before, R = found.certificate, exact.shape[1]
    known = exact.maximum(found.log_probs[:, :R])
    gained = (known.exp() - found.log_probs[:, :R].exp()).sum(1)
    pruned = (before.pruned - gained).clamp(min=0)
    log_probs = torch.cat((known, found.log_probs[:, R:]), dim=1)
    most = torch.logaddexp(log_probs, pruned.log()[:, None])  # (B, K)
    most[:, :R] = most[:, :R].where(~is_exact, known)
    log_probs, order = log_probs.sort(dim=1, descending=True, stable=True)
    most = most.gather(1, order)
    certificate = _certify(log_probs, most, pruned, before.left, before.dropped)
    return replace(
        found, labels=take(found.labels, order), log_probs=log_probs, certificate=certificate
    )


def _certify(
    log_probs: Tensor, most: Tensor, pruned: Tensor, left: Tensor, dropped: Tensor
) -> Certificate:
    """Decide for which documents no set can be more probable than the first.

    `most` bounds log p of each set that was kept, (B, K). A set that was dropped has at most the
    mass of the best one dropped and all that was pruned. A set that was never found has at most
    all that was pruned and all that is left.
    """
    best = log_probs[:, 0].exp() + ROUNDING
    is_best = (most[:, 1:].exp() <= best[:, None]).all(1)
    is_best &= dropped.exp() + pruned <= best
    return Certificate(is_best & (pruned + left <= best), pruned, left, dropped)


@lru_cache(maxsize=16)
def draw_label_keys(n_labels: int, device: torch.device) -> Tensor:
    """Draw a number for each label; the key of a set is the sum of its labels' numbers."""
    random = torch.Generator().manual_seed(n_labels)
    keys = torch.randint(-(2**62), 2**62, (n_labels,), generator=random)
    return keys.to(device)
