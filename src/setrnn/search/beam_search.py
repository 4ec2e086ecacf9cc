"""Algorithm 1: beam search over label sequences, of all labels or of the labels of given sets."""

# B documents, G searches per document, C labels to choose from, W beams now, K beams at most,
# S steps, Q distinct prefixes among the beams of a document, V = labels + STOP; rows of labels
# are padded with -1

from __future__ import annotations

from dataclasses import dataclass
from math import perm

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding


@dataclass(frozen=True)
class Sequences:
    """The best sequences of each search, in descending order of probability."""

    labels: Tensor  # (B, G, K, S) in the order of emission
    log_probs: Tensor  # (B, G, K) including STOP; -inf where there are fewer than K


def search_orders(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, beam_width: int
) -> Sequences:
    """Find the best orders of given sets (B, G, C), padded with -1 (ALL = 1)."""
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
    first: Tensor | None = None,
) -> Sequences:
    """Run Algorithm 1 for G searches per document at once.

    Restricting the labels forbids the others, and changes no probability. Beams of a document
    that share a prefix, in one search or in several, share its step. A set of n labels has at
    most n! / (n - t)! beams after t steps.

    Args:
        decoder: gives log-probabilities, one step at a time.
        encoding: the documents.
        choices: the labels that each search may use, (B, G, C), padded with -1.
        beam_width: K, the number of sequences that are kept.
        must_use_all: the paper's flag ALL: STOP only after all labels of `choices`.
        max_labels: the largest number of labels in a sequence.
        first: marks the labels of `choices` that a sequence must begin with, in any order.
    """
    B, G, C = choices.shape
    stop = decoder.n_labels
    max_labels = C if max_labels is None else min(max_labels, C)
    columns, closed, stop_closed = _columns(choices, stop, must_use_all)
    only_stop = closed.new_full((C + 1,), -torch.inf)
    only_stop[C:].zero_()
    emitted = choices.new_empty((B, G, 1, 0))  # padded with STOP
    scores = closed.new_zeros((B, G, 1))
    is_finished = torch.zeros_like(scores, dtype=torch.bool)
    prefix = torch.zeros_like(scores, dtype=torch.long)  # of each beam, among Q
    state = decoder.start(encoding)
    previous = choices.new_full((B, 1), stop)  # (B, Q) the last label of each prefix

    for n_emitted in range(max_labels + 1):
        log_probs, state = decoder.step(encoding, state, previous)  # (B, Q, V)
        # Step 1: extend every sequence by every label, or by STOP, the last column.
        closed[..., C] = stop_closed[n_emitted]
        if n_emitted == max_labels:
            closed[..., :C] = -torch.inf
        closed_now = closed if first is None else _close_all_but(first, closed, n_emitted)
        grown = _look_up(log_probs, prefix, columns) + closed_now[:, :, None]  # (B, G, W, C + 1)
        grown = torch.where(is_finished[..., None], only_stop, grown)  # finished ones stay
        candidates = (scores[..., None] + grown).flatten(2)  # (B, G, W (C + 1))

        # Step 2: keep the best K.
        width = _count_kept(beam_width, candidates.shape[2], C, n_emitted, must_use_all)
        scores, best = candidates.topk(width, dim=2)  # (B, G, W)
        parent, column = best // (C + 1), best % (C + 1)
        is_finished = column == C
        label = columns.gather(2, column)
        emitted = torch.cat((_take(emitted, parent), label[..., None]), dim=3)
        # Orders of given sets have a known length; other searches end when all beams have.
        if n_emitted == max_labels or (not must_use_all and _is_over(is_finished, scores)):
            break

        # Beams of one search have different prefixes; those of several may share some.
        if G == 1:
            prefix, rows, previous = parent, parent[:, 0], label[:, 0]
        else:
            is_dead = is_finished | (scores == -torch.inf)
            key = prefix.gather(2, parent) * (stop + 1) + label
            prefix, distinct = _number_distinct(key.masked_fill(is_dead, -1).flatten(1))
            prefix = prefix.view(parent.shape)
            rows, previous = distinct // (stop + 1), distinct % (stop + 1)
            if not rows.shape[1]:
                break
        state = tuple(take(each, rows) for each in state)
    is_none = (emitted == stop) | (scores == -torch.inf)[..., None]
    return Sequences(emitted.masked_fill(is_none, -1)[..., :n_emitted], scores)


def _columns(choices: Tensor, stop: int, must_use_all: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Lay out the outputs that each search may emit: its labels, then STOP.

    Returns the ids (B, G, C + 1); what to add to their log-probabilities (B, G, C + 1), 0 or
    -inf; and the same for STOP after each number of labels (C + 1, B, G).
    """
    B, G, C = choices.shape
    is_choice = choices >= 0
    columns = torch.cat((choices.where(is_choice, stop), choices.new_full((B, G, 1), stop)), dim=2)
    closed = torch.zeros(B, G, C + 1, device=choices.device)
    closed[..., :C].masked_fill_(~is_choice, -torch.inf)
    stop_closed = torch.zeros(C + 1, B, G, device=choices.device)
    if must_use_all:
        n_emitted = torch.arange(C + 1, device=choices.device)[:, None, None]
        stop_closed.masked_fill_(n_emitted != is_choice.sum(2), -torch.inf)
    return columns, closed, stop_closed


def _close_all_but(first: Tensor, closed: Tensor, n_emitted: int) -> Tensor:
    """Close all other outputs until the labels marked in `first` (B, G, C) are emitted."""
    is_early = n_emitted < first.sum(2, keepdim=True)  # (B, G, 1)
    may_begin = torch.nn.functional.pad(first, (0, 1), value=False)
    return closed.masked_fill(is_early & ~may_begin, -torch.inf)


def _count_kept(
    beam_width: int, n_candidates: int, C: int, n_emitted: int, must_use_all: bool
) -> int:
    """Return the number of beams to keep: at most as many as there can be."""
    if must_use_all:
        n_candidates = min(n_candidates, perm(C, min(n_emitted + 1, C)))
    return min(beam_width, n_candidates)


def _look_up(log_probs: Tensor, prefix: Tensor, columns: Tensor) -> Tensor:
    """Look up log-probabilities (B, Q, V) of the columns (B, G, C + 1) after prefixes (B, G, W)."""
    if prefix.shape[1] == 1:  # beam and prefix are the same
        return log_probs.gather(2, columns.expand(-1, prefix.shape[2], -1))[:, None]
    places = prefix[..., None] * log_probs.shape[2] + columns[:, :, None]  # (B, G, W, C + 1)
    return log_probs.flatten(1).gather(1, places.flatten(1)).view(places.shape)


def _is_over(is_finished: Tensor, scores: Tensor) -> bool:
    return bool((is_finished | (scores == -torch.inf)).all())


def _take(labels: Tensor, parent: Tensor) -> Tensor:
    """Take the labels (B, G, W, t) of each beam's parent."""
    return labels.gather(2, parent[..., None].expand(-1, -1, -1, labels.shape[3]))


def take(values: Tensor, rows: Tensor) -> Tensor:
    """Take rows (B, N) of each document's values (B, Q, ...): (B, N, ...)."""
    index = rows.view(*rows.shape, *[1] * (values.dim() - 2))
    return values.gather(1, index.expand(-1, -1, *values.shape[2:]))


def _number_distinct(keys: Tensor) -> tuple[Tensor, Tensor]:
    """Number the distinct keys of each document; -1 means no key.

    Returns the number of each key (B, N), 0 for no key, and the distinct keys (B, Q), padded
    with 0.
    """
    ordered, order = keys.sort(dim=1)
    is_new = ordered >= 0
    is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    n_seen = is_new.cumsum(1)
    n_distinct = int(n_seen[:, -1].max()) if keys.numel() else 0
    rank = (n_seen - 1).clamp(min=0)  # (B, N)
    distinct = keys.new_zeros((len(keys), max(n_distinct, 1)))
    distinct.scatter_reduce_(1, rank, ordered, "amax")
    numbers = torch.empty_like(rank).scatter_(1, order, rank)
    return numbers, distinct[:, :n_distinct]
