"""The probability of each label, from a sample of prefixes that stands for all of them.

A label is in the set if it is emitted at some step: p(label) is the sum over all steps and all
prefixes of p(prefix) p(label | prefix). At each step, probable prefixes are kept with their own
probability. The others are represented by a systematic sample of equal weights, so that nothing is
pruned (Fearnhead and Clifford 2003, optimal resampling).
"""

# B documents, W prefixes, N prefixes at most, L labels, V = labels + STOP

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.search.beam_search import take
from setrnn.search.emissions import sum_by_label

LEAST_MASS = 1e-3  # of the sequences that are not closed: less changes no probability shown
MOST_SCALED = 4.0  # times
GOLDEN = 0.6180339887  # the offsets of the samples of successive steps are spread by it


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
    for n_emitted in range(max_labels):
        log_probs, state = decoder.step(encoding, state, previous)  # (B, W, V)
        masses = weights[..., None] * log_probs.float().exp()[..., :n_labels]  # (B, W, L)
        # A sample has too many or too few prefixes with a label. What follows is scaled by how
        # many there should be: with the label, and without it.
        alive, held = weights.sum(1, keepdim=True), sum_by_label(weights, emitted, n_labels)
        passed = masses.sum(2)  # (B, W)
        new = masses.sum(1) * _ratio(alive - having, alive - held)
        kept = sum_by_label(passed, emitted, n_labels)
        having = kept * _ratio(having, held) + new
        probs += new
        is_open = masses.sum((1, 2)) > LEAST_MASS  # by document: batches change nothing
        if n_emitted + 1 == max_labels or not bool(is_open.any()):
            break
        masses = masses * is_open[:, None, None]
        offset = (0.5 + n_emitted * GOLDEN) % 1
        chosen, weights = resample(masses.flatten(1), n_prefixes, offset)
        parent, previous = chosen // n_labels, chosen % n_labels
        emitted = torch.cat((take(emitted, parent), previous[..., None]), dim=2)
        state = tuple(take(each, parent) for each in state)
    return probs.clamp(max=1.0)


def _ratio(wanted: Tensor, found: Tensor) -> Tensor:
    """Return how many times too small a sample is; 1 if there is nothing to scale."""
    ratio = wanted.clamp(min=0) / found.clamp(min=LEAST_MASS)
    return ratio.clamp(max=MOST_SCALED).where(found > LEAST_MASS, 1.0)


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
