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

ROUNDING = 1e-6  # of sums of probabilities
CANDIDATES_A_NODE = 4  # so many times the width are merged; what is smaller counts as pruned


@dataclass(frozen=True)
class FoundSets:
    """Sets of each document by falling mass, and what the search did not look at."""

    labels: Tensor  # (B, K, S) ascending; -1 fills up
    log_probs: Tensor  # (B, K) of the orders that were met; -inf where there are fewer than K sets
    pruned: Tensor  # (B,) the probability of all that was pruned: of any set at most so much
    left: Tensor  # (B,) the probability of all that was not looked at
    is_proved: Tensor  # (B,) no set can be more probable than the first

    def with_exact(self, exact: Tensor, is_exact: Tensor) -> FoundSets:
        """Take in log p of the first sets (B, R), exact where so marked, and rank them by it.

        A set that was found has at most its mass and all that was pruned.
        """
        R = exact.shape[1]
        most = torch.logaddexp(self.log_probs, self.pruned.log()[:, None])  # (B, K)
        most[:, :R] = most[:, :R].where(~is_exact, exact)
        log_probs = torch.cat((exact.maximum(self.log_probs[:, :R]), self.log_probs[:, R:]), dim=1)
        log_probs, order = log_probs.sort(dim=1, descending=True, stable=True)
        return FoundSets(
            take(self.labels, order),
            log_probs,
            self.pruned,
            self.left,
            _is_proved(log_probs, most.gather(1, order), self.pruned, self.left),
        )


@torch.no_grad()
def search_sets(
    decoder: OrderFree, encoding: Encoding, width: int, max_labels: int, n_sets: int = 1
) -> FoundSets:
    """Find the most probable sets, level by level: the sets of no label, of one, of two ...

    A document is done when all that is left in its frontier is less than the last of the
    `n_sets` best: nothing that was not pruned can then be among them.
    """
    B, stop, device = len(encoding.memory), decoder.n_labels, encoding.memory.device
    max_labels = min(max_labels, stop)
    label_keys = _label_keys(stop, device)
    state = decoder.start(encoding)
    previous = torch.full((B, 1), stop, device=device)
    mass, keys = torch.zeros(B, 1, device=device), torch.zeros_like(previous)
    labels = previous.new_empty((B, 1, 0))
    found = _Found(B, n_sets, device)
    for n_emitted in range(max_labels + 1):
        log_probs, state = decoder.step(encoding, state, previous)  # (B, W, V)
        log_stop = log_probs[..., stop]
        found.add(labels, mass + log_stop)
        if n_emitted == max_labels:
            found.look(mass + torch.log1p(-log_stop.exp()))
            break
        # Every node by every label; those of equal labels become one.
        grown = (mass[..., None] + log_probs[..., :stop]).flatten(1)  # (B, W L)
        grown, best = grown.topk(min(CANDIDATES_A_NODE * width, grown.shape[1]), dim=1)  # (B, X)
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
    return found.finish(max(width, n_sets))


def merge_equal(keys: Tensor, log_masses: Tensor, n_kept: int) -> tuple[Tensor, Tensor]:
    """Add up the masses (B, X) of equal keys (B, X), and keep the largest sums.

    Returns the sums (B, W) by falling mass, -inf for none, and where one of each is (B, W).
    """
    largest = log_masses.amax(1, keepdim=True).clamp(min=-1e30)
    shares = (log_masses - largest).exp()
    is_equal = keys[:, :, None] == keys[:, None]  # (B, X, X)
    sums = torch.where(is_equal, shares[:, None], 0.0).sum(2)
    is_repeat = is_equal.tril(-1).any(2)
    sums, best = sums.masked_fill(is_repeat, 0.0).topk(n_kept, dim=1)
    return largest + sums.log(), best


class _Found:
    """The sets that were found so far, and which documents are done."""

    def __init__(self, B: int, n_wanted: int, device: torch.device) -> None:
        self.labels: list[Tensor] = []  # of each level (B, W, S), as they were emitted
        self.log_probs: list[Tensor] = []  # (B, W)
        self.best = torch.full((B, n_wanted), -torch.inf, device=device)
        self.frontier = torch.zeros(B, device=device)  # what was left when it was done
        self.is_done = torch.zeros(B, dtype=torch.bool, device=device)

    def add(self, labels: Tensor, log_probs: Tensor) -> None:
        """Take in the sets of a level: (B, W, S) with log p (B, W)."""
        self.labels.append(labels)
        self.log_probs.append(log_probs)
        n_wanted = self.best.shape[1]
        self.best = torch.cat((self.best, log_probs), dim=1).topk(n_wanted, dim=1).values

    def look(self, log_mass: Tensor) -> Tensor:
        """Decide which documents are done, (B,), given the masses (B, W) of the next level."""
        left = log_mass.exp().sum(1)
        self.frontier = self.frontier.where(self.is_done, left)
        self.is_done = self.is_done | (left < self.best[:, -1].exp())
        return self.is_done

    def finish(self, n_kept: int) -> FoundSets:
        """Rank the sets of all levels, and say what is proved."""
        S = self.labels[-1].shape[2]
        padded = [nn.functional.pad(each, (0, S - each.shape[2]), value=-1) for each in self.labels]
        every = torch.cat(self.log_probs, dim=1)
        log_probs, best = every.topk(min(n_kept, every.shape[1]), dim=1)
        labels = take(torch.cat(padded, dim=1), best)
        last = torch.iinfo(labels.dtype).max
        is_label = (labels >= 0) & (log_probs > -torch.inf)[..., None]
        labels = labels.where(is_label, last).sort(dim=2).values
        pruned = (1 - every.exp().sum(1) - self.frontier).clamp(min=0)
        most = torch.logaddexp(log_probs, pruned.log()[:, None])
        return FoundSets(
            labels.where(labels < last, -1),
            log_probs,
            pruned,
            self.frontier,
            _is_proved(log_probs, most, pruned, self.frontier),
        )


def _is_proved(log_probs: Tensor, most: Tensor, pruned: Tensor, left: Tensor) -> Tensor:
    """Tell where no set can be more probable than the first, (B,).

    `most` is what each set found can have at most, (B, K); one that was not found at most all
    that was pruned or left.
    """
    best = log_probs[:, 0].exp() + ROUNDING
    is_best = (most[:, 1:].exp() <= best[:, None]).all(1)
    return is_best & (pruned + left <= best)


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
