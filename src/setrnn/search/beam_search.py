"""Algorithm 1: beam search over label sequences, of all labels or of the labels of given sets."""

# B documents, G searches a document, C labels to choose from, W beams now, K beams at most,
# S steps, Q distinct prefixes among a document's beams, V = labels + STOP

from __future__ import annotations

from dataclasses import dataclass
from math import perm

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding, State


@dataclass(frozen=True)
class Sequences:
    """The best sequences of each search, by falling probability."""

    labels: Tensor  # (B, G, K, S) in the order they were emitted; -1 fills up
    log_probs: Tensor  # (B, G, K) with STOP's; -inf where there are fewer than K


def search_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, beam_width: int
) -> Sequences:
    """Find the best orders of given sets (ALL = 1): label_sets (B, G, C), -1 fills up."""
    return beam_search(decoder, encoding, label_sets, beam_width, must_use_all=True)


def search_sequences(
    decoder: Decoder, encoding: Encoding, beam_width: int, max_labels: int
) -> Sequences:
    """Find the best sequences of any labels (ALL = 0)."""
    every = torch.arange(decoder.n_labels, device=encoding.memory.device)
    choices = every.expand(len(encoding.memory), 1, -1)
    return beam_search(
        decoder, encoding, choices, beam_width, must_use_all=False, max_labels=max_labels
    )


@torch.no_grad()
def beam_search(
    decoder: Decoder,
    encoding: Encoding,
    choices: Tensor,
    beam_width: int,
    must_use_all: bool,
    max_labels: int | None = None,
) -> Sequences:
    """Run Algorithm 1 for G searches a document at once.

    Restricting the labels only forbids: probabilities are those of the whole model. Beams of a
    document that share a prefix, in one search or in several, share its step. A set of n labels
    has n! / (n - t)! beams after t steps, never more.

    Args:
        decoder: gives log-probabilities, a step at a time.
        encoding: the documents.
        choices: the labels each search may use, (B, G, C); -1 fills up.
        beam_width: K, how many sequences are kept.
        must_use_all: the paper's flag ALL: STOP only after all labels of `choices`.
        max_labels: the most labels a sequence may have.
    """
    B, G, C = choices.shape
    stop = decoder.n_labels
    max_labels = C if max_labels is None else min(max_labels, C)
    is_choice = choices >= 0
    set_sizes = is_choice.sum(2)  # (B, G)
    columns = torch.cat((choices.where(is_choice, stop), choices.new_full((B, G, 1), stop)), dim=2)
    labels = choices.new_empty((B, G, 1, 0))
    scores = torch.zeros((B, G, 1), device=choices.device)
    is_finished = torch.zeros((B, G, 1), dtype=torch.bool, device=choices.device)
    prefix = torch.zeros((B, G, 1), dtype=torch.long, device=choices.device)
    state = decoder.start(encoding)
    previous = choices.new_full((B, 1), stop)  # (B, Q) the last label of each prefix

    for n_emitted in range(max_labels + 1):
        log_probs, state = decoder.step(encoding, state, previous)  # (B, Q, V)
        # Step 1: every sequence by every label, or by STOP, which is the last column.
        grown = _of_beams(log_probs, prefix, columns)  # (B, G, W, C + 1)
        may_grow = is_choice[:, :, None] & ~is_finished[..., None]
        if n_emitted == max_labels:
            may_grow = torch.zeros_like(may_grow)
        may_stop = ~is_finished
        if must_use_all:
            may_stop = may_stop & (set_sizes[:, :, None] == n_emitted)
        is_open = torch.cat((may_grow, may_stop[..., None]), dim=3)
        grown = grown.masked_fill(~is_open, -torch.inf)
        grown[..., -1] = grown[..., -1].masked_fill(is_finished, 0.0)  # stopped ones are kept
        candidates = (scores[..., None] + grown).flatten(2)  # (B, G, W (C + 1))

        # Step 2: the best K of them.
        width = _width(beam_width, candidates.shape[2], C, n_emitted, must_use_all)
        scores, best = candidates.topk(width, dim=2)  # (B, G, W)
        parent, column = best // (C + 1), best % (C + 1)
        is_finished = (column == C) | (scores == -torch.inf)
        emitted = columns.gather(2, column).masked_fill(is_finished, -1)
        labels = _take(labels, parent)
        if n_emitted == max_labels:
            break
        labels = torch.cat((labels, emitted[..., None]), dim=3)

        # Beams with the same prefix go on together.
        key = prefix.gather(2, parent) * (stop + 1) + emitted
        prefix, distinct = _distinct(key.masked_fill(is_finished, -1).flatten(1))
        if not distinct.shape[1]:
            break
        prefix = prefix.view(B, G, -1)
        previous = (distinct % (stop + 1)).clamp(min=0)
        state = _pick(state, (distinct // (stop + 1)).clamp(min=0))
    return Sequences(labels[..., : _longest(labels)], scores)


def _width(beam_width: int, n_candidates: int, C: int, n_emitted: int, must_use_all: bool) -> int:
    """Count the beams to keep: no more than there can be."""
    if must_use_all:
        n_candidates = min(n_candidates, perm(C, min(n_emitted + 1, C)))
    return min(beam_width, n_candidates)


def _of_beams(log_probs: Tensor, prefix: Tensor, columns: Tensor) -> Tensor:
    """Look up each beam's labels: (B, Q, V), prefixes (B, G, W), columns (B, G, C + 1)."""
    B, Q, V = log_probs.shape
    places = prefix[..., None] * V + columns[:, :, None]  # (B, G, W, C + 1)
    return log_probs.flatten(1).gather(1, places.flatten(1)).view(places.shape)


def _take(labels: Tensor, parent: Tensor) -> Tensor:
    """Take the labels (B, G, W, t) of each beam's parent."""
    return labels.gather(2, parent[..., None].expand(-1, -1, -1, labels.shape[3]))


def _pick(state: State, rows: Tensor) -> State:
    """Take the states (B, Q, ...) of each prefix's parent."""
    picked = []
    for each in state:
        index = rows.view(*rows.shape, *[1] * (each.dim() - 2))
        picked.append(each.gather(1, index.expand(-1, -1, *each.shape[2:])))
    return tuple(picked)


def _distinct(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Number the distinct keys of each document; -1 is none.

    Returns each key's number (B, N), 0 for none, and the distinct keys (B, Q), -1 fills up.
    """
    ordered, order = keys.sort(dim=1)
    is_new = ordered >= 0
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    rank = (is_new.cumsum(1) - 1).clamp(min=0)  # (B, N)
    n_distinct = int(is_new.sum(1).max()) if keys.numel() else 0
    distinct = keys.new_full((len(keys), max(n_distinct, 1)), -1)
    distinct.scatter_reduce_(1, rank, ordered, "amax")
    numbers = torch.empty_like(rank).scatter_(1, order, rank)
    return numbers, distinct[:, :n_distinct]


def _longest(labels: Tensor) -> int:
    return int((labels >= 0).sum(3).max()) if labels.numel() else 0
