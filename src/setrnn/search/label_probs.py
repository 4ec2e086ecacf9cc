"""The probability of each label, from the nodes of a search or from a sample of prefixes.

A label is in the set if it is emitted at some step: p(label) is the sum over all steps and all
prefixes of p(prefix) p(label | prefix). A search keeps only some prefixes, so this sum is a lower
bound. There are two ways to estimate the rest:

- From the nodes of a search over label sets (`Emissions`). The labels of a pruned node are known.
  Those that would be added to it are estimated from the kept nodes of the same level that lack
  them.
- From a sample that stands for all prefixes (`sample_label_probs`). At each step, probable prefixes
  are kept with their own probability. The others are represented by a systematic sample of equal
  weights, so that nothing is pruned (Fearnhead and Clifford 2003, optimal resampling).
"""

# B documents, W nodes or prefixes, N prefixes at most, L labels, V = labels + STOP, t labels of a
# node

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.search.beam_search import take
from setrnn.search.prefix_tree import PrefixTree, can_share_prefixes

LEAST_MASS = 1e-4  # of the pruned nodes: less changes no probability that is shown
PRIOR_MASS = 1e-3  # of the rates of the step before
TINY = 1e-12

LEAST_OPEN = 1e-3  # the mass of sequences that are not closed: less changes no probability shown
MOST_SCALED = 4.0  # times
GOLDEN = 0.6180339887  # the offsets of the samples of successive steps are spread by it

Spread = Callable[[Tensor], Tensor]  # from values of some documents to those of all


class Emissions:
    """Adds up the probabilities of labels, step by step, with an estimate for what was pruned."""

    def __init__(self, B: int, n_labels: int, device: torch.device) -> None:
        self.n_added = 0  # levels
        self.total = torch.zeros(B, n_labels, device=device)  # p(label emitted so far)
        self.alive = torch.ones(B, device=device)  # p(not stopped so far), of nodes not pruned
        self.alive_with = torch.zeros_like(self.total)  # the same and the label is in the node
        self.lost = torch.zeros(B, device=device)  # p(not stopped so far), of pruned nodes
        self.lost_with = torch.zeros_like(self.total)
        self.hazard = torch.zeros_like(self.total)  # p(label emitted next | not emitted so far)
        self.go_on = torch.zeros(B, device=device)  # p(not stopped next)

    def add(
        self, log_mass: Tensor, log_probs: Tensor, labels: Tensor, spread: Spread = lambda x: x
    ) -> None:
        """Add one step.

        Args:
            log_mass: log p of the kept nodes, (B, W); -inf for none.
            log_probs: log p of what follows each node, (B, W, V).
            labels: the labels of the nodes, (B, W, t).
            spread: gives 0 to the documents that are left out, which have no nodes any more.
        """
        self.n_added += 1
        mass, probs = log_mass.exp(), log_probs.exp()
        L = self.total.shape[1]
        kept, kept_with = spread(mass.sum(1)), spread(sum_by_label(mass, labels, L))
        # What was pruned after the last step: it has gone before, and is not kept.
        self.lost += (self.alive - kept).clamp(min=0)
        self.lost_with += (self.alive_with - kept_with).clamp(min=0)
        emitted = spread((mass[:, None] @ probs)[:, 0])  # (B, V)
        stopped, emitted = emitted[:, -1], emitted[:, :-1]
        # Where few kept nodes lack a label, its rate is near that of the last step.
        without = (kept[:, None] - kept_with).clamp(min=0)
        hazard = (emitted + PRIOR_MASS * self.hazard) / (without + PRIOR_MASS)
        self.hazard = hazard.clamp(max=1.0)
        # A document whose search has ended keeps the rate of its last step.
        is_open = kept > TINY
        go_on = 1 - stopped / kept.clamp(min=TINY)
        self.go_on = torch.where(is_open, go_on.clamp(0.0, 1.0), self.go_on)
        self.total += emitted
        self._continue_lost()
        passed = mass * (1 - probs[..., -1])
        self.alive = spread(passed.sum(1))
        self.alive_with = spread(sum_by_label(passed, labels, L)) + emitted

    def finish(self, n_levels: int) -> Tensor:
        """Return p(label), (B, L); pruned nodes are continued up to `n_levels`."""
        self.lost = self.lost + self.alive
        self.lost_with = self.lost_with + self.alive_with
        for _ in range(self.n_added, n_levels):
            if not bool((self.lost > LEAST_MASS).any()):
                break
            self._continue_lost()
        return self.total.clamp(0.0, 1.0)

    def _continue_lost(self) -> None:
        """Let pruned nodes emit what kept nodes emit, except the labels they have."""
        is_open = self.lost > LEAST_MASS  # by document: batches change nothing
        self.lost, self.lost_with = self.lost * is_open, self.lost_with * is_open[:, None]
        emitted = (self.lost[:, None] - self.lost_with).clamp(min=0) * self.hazard
        self.lost = self.lost * self.go_on
        scale = self.lost / emitted.sum(1).clamp(min=TINY)
        emitted = torch.minimum(emitted * scale[:, None], self.lost[:, None])
        self.lost_with = self.lost_with * self.go_on[:, None] + emitted
        self.total += emitted


def sum_by_label(mass: Tensor, labels: Tensor, n_labels: int) -> Tensor:
    """Sum the masses (B, W) of the nodes (B, W, t) that contain each label: (B, L)."""
    spread = mass[..., None].expand(labels.shape).flatten(1)
    return mass.new_zeros(len(mass), n_labels).scatter_add_(1, labels.flatten(1), spread)


@torch.no_grad()
def sample_label_probs(
    decoder: Decoder, encoding: Encoding, n_prefixes: int, max_labels: int
) -> Tensor:
    """Return an estimate of p(label | document), (B, L). It has no random numbers."""
    B, n_labels, device = len(encoding.memory), decoder.n_labels, encoding.memory.device
    max_labels = min(max_labels, n_labels)
    probs = torch.zeros(B, n_labels, device=device)
    having = torch.zeros_like(probs)  # p(not stopped so far, label emitted)
    weights = torch.ones(B, 1, device=device)
    emitted = torch.empty(B, 1, 0, dtype=torch.long, device=device)  # by each prefix
    state = decoder.start(encoding)
    previous = torch.full((B, 1), n_labels, device=device)
    # A tree of its own: the bits do not depend on what was searched before.
    tree = PrefixTree(decoder, encoding) if can_share_prefixes(decoder, encoding) else None
    rows = torch.arange(B)[:, None]  # (B, W) of the prefixes in the tree
    for n_emitted in range(max_labels):
        if tree is not None:
            log_probs = tree.levels[n_emitted].log_probs[rows]  # (B, W, V)
        else:
            log_probs, state = decoder.step(encoding, state, previous)
        masses = weights[..., None] * log_probs.float().exp()[..., :n_labels]  # (B, W, L)
        # A sample has too many or too few prefixes with a label. What follows is scaled by how
        # many there should be: with the label, and without it.
        alive, held = weights.sum(1, keepdim=True), sum_by_label(weights, emitted, n_labels)
        passed = masses.sum(2)  # (B, W)
        new = masses.sum(1) * _ratio(alive - having, alive - held)
        kept = sum_by_label(passed, emitted, n_labels)
        having = kept * _ratio(having, held) + new
        probs += new
        is_open = masses.sum((1, 2)) > LEAST_OPEN  # by document: batches change nothing
        if n_emitted + 1 == max_labels or not bool(is_open.any()):
            break
        masses = masses * is_open[:, None, None]
        offset = (0.5 + n_emitted * GOLDEN) % 1
        chosen, weights = resample(masses.flatten(1), n_prefixes, offset)
        parent, previous = chosen // n_labels, chosen % n_labels
        emitted = torch.cat((take(emitted, parent), previous[..., None]), dim=2)
        if tree is None:
            state = tuple(take(each, parent) for each in state)
        else:  # prefixes without a weight are not computed
            above, is_live = rows.gather(1, parent), weights > 0
            rows = torch.zeros_like(previous)
            rows[is_live] = tree.find(n_emitted + 1, above[is_live], previous[is_live])
    return probs.clamp(max=1.0)


def _ratio(wanted: Tensor, found: Tensor) -> Tensor:
    """Return how many times too small a sample is; 1 if there is nothing to scale."""
    ratio = wanted.clamp(min=0) / found.clamp(min=LEAST_OPEN)
    return ratio.clamp(max=MOST_SCALED).where(found > LEAST_OPEN, 1.0)


def resample(masses: Tensor, n_kept: int, offset: float) -> tuple[Tensor, Tensor]:
    """Choose places of masses (B, X), and the weights that stand for all of them: (B, N) each.

    Masses above a limit keep their weight. The others share places with the limit as the weight,
    so that the weights add up to the masses.
    """
    N = min(n_kept, masses.shape[1])
    place = torch.arange(N, device=masses.device)
    largest, best = masses.topk(N, dim=1)
    # If k masses keep their weight, the other N - k places share the rest.
    rest = (masses.sum(1, keepdim=True) - largest.cumsum(1) + largest).clamp(min=0)  # (B, N)
    limit = rest / (N - place)
    n_exact = (largest > limit).sum(1, keepdim=True)  # they come first
    limit = limit.gather(1, n_exact.clamp(max=N - 1)).where(n_exact < N, 0.0)
    is_exact = place < n_exact
    others = masses.scatter(1, best, largest.masked_fill(is_exact, 0.0)).cumsum(1)
    wanted = ((place - n_exact).clamp(min=0) + offset) * limit
    sampled = torch.searchsorted(others, wanted).clamp(max=masses.shape[1] - 1)
    return best.where(is_exact, sampled), largest.where(is_exact, limit)
