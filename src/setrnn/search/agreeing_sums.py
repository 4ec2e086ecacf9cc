"""The probability of all sets that agree with what is known, for decoders that ignore the order.

f({}) = 1,  f(S) = sum over l in S of f(S without l) p(l | x, S without l) w_l
p(known) = sum over the sets S that contain all given labels of f(S) p(STOP | x, S)

w_l is 0 for an absent label and 1 for a given one. The sum is over the best sets of each size: a
lower bound, and exact if the search is wide enough to keep them all.
"""

# B documents, R given labels at most, W nodes of a level, Q of all levels, t labels of a node,
# U labels of all nodes of a document, L labels, V = labels + STOP; sets are padded with -1

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from setrnn.model.dropout import without_dropout
from setrnn.model.interfaces import Encoding, OrderFree
from setrnn.model.layouts import Subsets
from setrnn.search.beam_search import take
from setrnn.search.lattice import CANDIDATES_PER_NODE, draw_label_keys, merge_equal
from setrnn.search.set_search import mark_labels
from setrnn.search.subset_sums import NOTHING

MOST_ADDED = 8  # labels that are added to those given
NEGLIGIBLE = 1e-4  # a level with less than this share of the sum so far ends the search


@dataclass(frozen=True)
class _Level:
    """The sets of t labels that were kept."""

    labels: Tensor  # (B, W, t)
    keys: Tensor  # (B, W)
    is_node: Tensor  # (B, W) False where there are fewer, and for repeats


def agreeing_log_prob(
    decoder: OrderFree,
    encoding: Encoding,
    given: Tensor,
    log_weights: Tensor,
    width: int,
    most_added: int = MOST_ADDED,
) -> Tensor:
    """Return the log of the weighted sum over the sets that agree with what is known: (B,).

    Args:
        decoder: gives log-probabilities after any set.
        encoding: the documents.
        given: the labels that a set must contain, (B, R), padded with -1.
        log_weights: log w of each label, (B, L): 0 for given labels, -inf for absent ones.
        width: the number of sets of each size that are kept by each of two searches.
        most_added: the most labels of a set beside those given.
    """
    is_given = mark_labels(given, decoder.n_labels)
    with without_dropout(decoder):
        first, free = (
            _search(decoder, encoding, is_given, log_weights, width, most_added, given_first)
            for given_first in (True, False)
        )
    levels = [_join(*pair) for pair in zip(first, free, strict=False)]
    longer = max(first, free, key=len)
    return _sum_through(decoder, encoding, is_given, log_weights, levels + longer[len(levels) :])


@torch.no_grad()
def _search(
    decoder: OrderFree,
    encoding: Encoding,
    is_given: Tensor,
    log_weights: Tensor,
    width: int,
    most_added: int,
    given_first: bool,
) -> list[_Level]:
    """Keep the best sets of each size, of those that begin with the given labels or of all."""
    B, stop, device = len(is_given), decoder.n_labels, is_given.device
    n_given = is_given.sum(1)  # (B,)
    keys_of = draw_label_keys(stop, device)
    state = decoder.start(encoding)
    previous = torch.full((B, 1), stop, device=device)
    mass, keys = torch.zeros(B, 1, device=device), torch.zeros_like(previous)
    labels = previous.new_empty((B, 1, 0))
    levels, found = [], torch.zeros(B, device=device)
    most = min(int(n_given.max()) + most_added, stop)
    for t in range(most + 1):
        levels.append(_Level(labels, keys, mass > -torch.inf))
        log_probs, state = decoder.step(encoding, state, previous)  # (B, W, V)
        is_whole = _count_given(labels, is_given) == n_given[:, None]
        ended = (mass + log_probs[..., stop]).exp()
        found = found + ended.masked_fill(~is_whole, 0.0).sum(1)
        if t == most:
            break
        grown = mass[..., None] + log_probs[..., :stop] + log_weights[:, None]
        if given_first:
            is_early = (t < n_given)[:, None, None]
            grown = grown.masked_fill(is_early & ~is_given[:, None], -torch.inf)
        grown = grown.flatten(1)
        grown, best = grown.topk(min(CANDIDATES_PER_NODE * width, grown.shape[1]), dim=1)
        parent, label = best // stop, best % stop
        grown_keys = keys.gather(1, parent) + keys_of[label]
        mass, chosen = merge_equal(grown_keys, grown, min(width, grown.shape[1]))  # (B, W)
        if bool((mass.exp().sum(1) <= NEGLIGIBLE * found).all()):
            break
        keys = grown_keys.gather(1, chosen)
        parent, previous = parent.gather(1, chosen), label.gather(1, chosen)
        labels = torch.cat((take(labels, parent), previous[..., None]), dim=2)
        state = tuple(take(each, parent) for each in state)
    return levels


def _count_given(labels: Tensor, is_given: Tensor) -> Tensor:
    """Count the given labels (B, L) among those of each node (B, W, t): (B, W)."""
    B, W, t = labels.shape
    return is_given.gather(1, labels.flatten(1)).view(B, W, t).sum(2)


def _join(one: _Level, other: _Level) -> _Level:
    """Return the sets of two searches, each once."""
    labels = torch.cat((one.labels, other.labels), dim=1)
    keys = torch.cat((one.keys, other.keys), dim=1)
    is_node = torch.cat((one.is_node, other.is_node), dim=1)
    is_equal = (keys[:, :, None] == keys[:, None]) & is_node[:, None]
    return _Level(labels, keys, is_node & ~is_equal.tril(-1).any(2))


def _sum_through(
    decoder: OrderFree,
    encoding: Encoding,
    is_given: Tensor,
    log_weights: Tensor,
    levels: list[_Level],
) -> Tensor:
    """Sum over the paths through the nodes of each level, with gradients: (B,)."""
    B, stop, device = len(is_given), decoder.n_labels, is_given.device
    keys_of = draw_label_keys(stop, device)
    widths = [each.labels.shape[1] for each in levels]
    log_probs = torch.split(_after(decoder, encoding, levels), widths, dim=1)
    mass = log_probs[0].new_zeros(B, 1)
    ends = []
    n_given = is_given.sum(1, keepdim=True)
    for t, level in enumerate(levels):
        if t:
            own = _emissions(log_probs[t - 1], log_weights, level.labels)  # (B, W, t, before)
            is_edge = _find_edges(levels[t - 1], level, keys_of)
            paths = (mass[:, None, None] + own).where(is_edge, NOTHING)
            mass = paths.flatten(2).logsumexp(2)  # (B, W)
        is_end = level.is_node & (_count_given(level.labels, is_given) == n_given)
        ends.append((mass + log_probs[t][..., stop]).where(is_end, NOTHING))
    return torch.cat(ends, dim=1).logsumexp(1)


def _emissions(log_probs: Tensor, log_weights: Tensor, labels: Tensor) -> Tensor:
    """Return log p(l | node) w_l of each label (B, W, t), after each node of the level before.

    Log-probabilities are (B, W', V); the result is (B, W, t, W').
    """
    B, n_before = log_probs.shape[:2]
    flat = labels.flatten(1)  # (B, W t)
    own = log_probs.gather(2, flat[:, None].expand(-1, n_before, -1))
    own = own + log_weights.gather(1, flat)[:, None]
    return own.view(B, n_before, *labels.shape[1:]).permute(0, 2, 3, 1)


def _find_edges(before: _Level, now: _Level, keys_of: Tensor) -> Tensor:
    """Mark where a node without one of its labels is a node of the level before: (B, W, t, W')."""
    without = now.keys[..., None] - keys_of[now.labels]  # (B, W, t)
    is_edge = without[..., None] == before.keys[:, None, None]
    return is_edge & before.is_node[:, None, None] & now.is_node[..., None, None]


def _after(decoder: OrderFree, encoding: Encoding, levels: list[_Level]) -> Tensor:
    """Return the log-probabilities after each node of all levels: (B, Q, V)."""
    T = levels[-1].labels.shape[2]
    all_labels = [each.labels for each in levels]
    padded = [nn.functional.pad(each, (0, T - each.shape[2]), value=-1) for each in all_labels]
    labels = torch.cat(padded, dim=1)  # (B, Q, T)
    B, Q = labels.shape[:2]
    marks = mark_labels(labels.flatten(0, 1), decoder.n_labels).view(B, Q, -1)  # (B, Q, L)
    is_used = marks.any(1)
    U = max(int(is_used.sum(1).max()), 1)
    every = is_used.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :U]  # (B, U)
    of_node = every[:, None].expand(-1, Q, -1)
    is_member = marks.gather(2, of_node)
    documents = torch.arange(B, device=labels.device)
    rows = documents.repeat_interleave(Q, output_size=B * Q)
    subsets = Subsets(documents, [(B, Q)], rows, of_node.flatten(0, 1), is_member.flatten(0, 1))
    return decoder.after(encoding, subsets).view(B, Q, -1)
