"""One search over label sets, for decoders that forget the order: equal sets are one node.

A node's mass is the sum of all orders that reached it. The answer comes with a certificate.
"""

# B documents, W nodes kept, L labels, V = labels + STOP, K sets, S labels of the largest,
# X candidates for the next level

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from setrnn.model.interfaces import Encoding, OrderFree

CANDIDATES_A_NODE = 4  # so many times the width are merged; what is smaller counts as pruned


@dataclass(frozen=True)
class FoundSets:
    """Sets of each document by falling probability, and what the search can say for them."""

    labels: Tensor  # (B, K, S) ascending; -1 fills up
    log_probs: Tensor  # (B, K); -inf where there are fewer than K sets
    is_proved: Tensor  # (B,) no set that was not pruned is more probable than the first
    pruned: Tensor  # (B,) the probability of all that was pruned


@torch.no_grad()
def search_sets(
    decoder: OrderFree, encoding: Encoding, width: int, max_labels: int, n_sets: int = 1
) -> FoundSets:
    """Find the most probable sets, level by level: the sets of no label, of one, of two ...

    A document is done when all that is left in its frontier is less than the last of the
    `n_sets` best: none of it can then be among them.
    """
    B, stop = len(encoding.memory), decoder.n_labels
    max_labels = min(max_labels, stop)
    label_keys = _label_keys(stop, encoding.memory.device)
    state = decoder.start(encoding)
    previous = torch.full((B, 1), stop, device=encoding.memory.device)
    mass = torch.zeros(B, 1, device=previous.device)
    keys = torch.zeros_like(previous)
    labels = previous.new_empty((B, 1, 0))
    found = _Found.nothing(B, max(width, n_sets), n_sets, previous.device)
    for n_emitted in range(max_labels + 1):
        log_probs, state = decoder.step(encoding, state, previous)  # (B, W, V)
        found = found.add(labels, mass + log_probs[..., stop])
        if n_emitted == max_labels:
            found, _ = found.look(mass + torch.log1p(-log_probs[..., stop].exp()))
            break
        # Every node by every label; those of equal labels become one.
        grown = (mass[..., None] + log_probs[..., :stop]).flatten(1)  # (B, W L)
        grown, best = grown.topk(min(CANDIDATES_A_NODE * width, grown.shape[1]), dim=1)  # (B, X)
        parent, label = best // stop, best % stop
        grown_keys = keys.gather(1, parent) + label_keys[label]
        mass, chosen = merge_equal(grown_keys, grown, min(width, grown.shape[1]))  # (B, W)
        found, is_done = found.look(mass)
        if is_done.all():
            break
        mass = mass.masked_fill(is_done[:, None], -torch.inf)
        keys = grown_keys.gather(1, chosen)
        parent, previous = parent.gather(1, chosen), label.gather(1, chosen)
        labels = torch.cat((take(labels, parent), previous[..., None]), dim=2)
        state = tuple(take(each, parent) for each in state)
    return found.finished()


def merge_equal(keys: Tensor, log_masses: Tensor, n_kept: int) -> tuple[Tensor, Tensor]:
    """Add up the masses (B, X) of equal keys (B, X), and keep the largest sums.

    Returns the sums (B, W) by falling mass, -inf for none, and where one of each is (B, W).
    """
    ordered, order = keys.sort(dim=1)
    is_new = torch.ones_like(ordered, dtype=torch.bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    number = is_new.cumsum(1) - 1  # of the distinct key
    largest = log_masses.amax(1, keepdim=True).clamp(min=-1e30)
    shares = (log_masses - largest).exp().gather(1, order)
    sums = torch.zeros_like(shares).scatter_add_(1, number, shares)
    one = torch.full_like(order, keys.shape[1]).scatter_reduce_(1, number, order, "amin")
    sums, best = sums.topk(n_kept, dim=1)
    return largest + sums.log(), one.gather(1, best).clamp(max=keys.shape[1] - 1)


@dataclass(frozen=True)
class _Found:
    """The sets that were found so far."""

    labels: Tensor  # (B, K, S) as they were emitted
    log_probs: Tensor  # (B, K)
    n_wanted: int
    total: Tensor  # (B,) the probability of all sets found, those that were not kept too
    frontier: Tensor  # (B,) what was left to look at when the document was done
    is_done: Tensor  # (B,)

    @classmethod
    def nothing(cls, B: int, K: int, n_wanted: int, device: torch.device) -> _Found:
        return cls(
            torch.full((B, K, 0), -1, device=device),
            torch.full((B, K), -torch.inf, device=device),
            n_wanted,
            torch.zeros(B, device=device),
            torch.ones(B, device=device),
            torch.zeros(B, dtype=torch.bool, device=device),
        )

    def add(self, labels: Tensor, log_probs: Tensor) -> _Found:
        """Take in the sets of a level: (B, W, S) with log p (B, W)."""
        K = self.labels.shape[1]
        known = nn.functional.pad(
            self.labels, (0, labels.shape[2] - self.labels.shape[2]), value=-1
        )
        every = torch.cat((self.log_probs, log_probs), dim=1)
        best_log_probs, best = every.topk(K, dim=1)
        return _Found(
            take(torch.cat((known, labels), dim=1), best),
            best_log_probs,
            self.n_wanted,
            self.total + log_probs.exp().sum(1),
            self.frontier,
            self.is_done,
        )

    def look(self, mass: Tensor) -> tuple[_Found, Tensor]:
        """Decide which documents are done, given the masses (B, W) of the next level."""
        left = mass.exp().sum(1)
        frontier = self.frontier.where(self.is_done, left)  # as it was when it was done
        is_done = self.is_done | (left < self.log_probs[:, self.n_wanted - 1].exp())
        found = _Found(self.labels, self.log_probs, self.n_wanted, self.total, frontier, is_done)
        return found, is_done

    def finished(self) -> FoundSets:
        """Sort the labels, and say what is proved."""
        last = torch.iinfo(self.labels.dtype).max
        is_label = (self.labels >= 0) & (self.log_probs > -torch.inf)[..., None]
        labels = self.labels.where(is_label, last).sort(dim=2).values
        best = self.log_probs[:, 0].exp()
        return FoundSets(
            labels.where(labels < last, -1),
            self.log_probs,
            self.frontier <= best,
            (1 - self.total - self.frontier).clamp(min=0),
        )


def take(values: Tensor, parent: Tensor) -> Tensor:
    """Take what belongs to each node's parent: (B, W, ...)."""
    index = parent.view(*parent.shape, *[1] * (values.dim() - 2))
    return values.gather(1, index.expand(-1, -1, *values.shape[2:]))


@lru_cache(maxsize=16)
def _label_keys(n_labels: int, device: torch.device) -> Tensor:
    """Draw a number for each label; a set is known by the sum of its labels' numbers."""
    random = torch.Generator().manual_seed(n_labels)
    keys = torch.randint(-(2**62), 2**62, (n_labels,), generator=random)
    return keys.to(device)
