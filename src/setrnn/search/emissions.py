"""The probability of each label, from the nodes of a search over label sets.

A label is in the set if it is added at some level: p(label) is the sum over all levels and all
nodes of p(node) p(label | node). A search keeps only some nodes, so this sum is a lower bound. The
labels of a pruned node are known. Those that would be added to it are estimated from the kept
nodes of the same level that lack them.
"""

# B documents, W nodes kept, L labels, V = labels + STOP, t labels of a node

from __future__ import annotations

import torch
from torch import Tensor

LEAST_MASS = 1e-4  # of the pruned nodes: less changes no probability that is shown
PRIOR_MASS = 1e-3  # of the rates of the step before
TINY = 1e-12


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

    def add(self, log_mass: Tensor, log_probs: Tensor, labels: Tensor) -> None:
        """Add one step.

        Args:
            log_mass: log p of the kept nodes, (B, W); -inf for none.
            log_probs: log p of what follows each node, (B, W, V).
            labels: the labels of the nodes, (B, W, t).
        """
        self.n_added += 1
        mass, probs = log_mass.exp(), log_probs.exp()
        kept, kept_with = mass.sum(1), sum_by_label(mass, labels, self.total.shape[1])
        # What was pruned after the last step: it has gone before, and is not kept.
        self.lost += (self.alive - kept).clamp(min=0)
        self.lost_with += (self.alive_with - kept_with).clamp(min=0)
        emitted = (mass[:, None] @ probs)[:, 0]  # (B, V)
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
        self.alive = passed.sum(1)
        self.alive_with = sum_by_label(passed, labels, self.total.shape[1]) + emitted

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
