"""Algorithm 3: the most probable sets, by a search for sequences and one for each set's orders."""

# B documents, K beams, G distinct sets, S labels of the longest sequence

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.search.beam_search import Sequences, search_orders, search_sequences


@dataclass(frozen=True)
class ScoredSets:
    """Distinct sets of each document, by falling probability."""

    labels: Tensor  # (B, G, S) ascending; -1 fills up
    log_probs: Tensor  # (B, G) -inf where there are fewer than G sets
    sequences: Sequences  # the search they were found by: (B, 1, K, S)


def most_probable_sets(
    decoder: Decoder, encoding: Encoding, beam_width: int, max_labels: int
) -> ScoredSets:
    """Find the most probable sets (Algorithm 3)."""
    sequences = search_sequences(decoder, encoding, beam_width, max_labels)
    return score_sets(decoder, encoding, sequences, beam_width)


def score_sets(
    decoder: Decoder, encoding: Encoding, sequences: Sequences, beam_width: int
) -> ScoredSets:
    """Rank the sets of the sequences of one search, each by the orders found for it."""
    label_sets, is_distinct = distinct_sets(sequences)
    log_probs = set_log_prob(decoder, encoding, label_sets, beam_width)
    return _ranked(label_sets, log_probs.masked_fill(~is_distinct, -torch.inf), sequences)


def sets_of_best_sequences(
    decoder: Decoder, encoding: Encoding, beam_width: int, max_labels: int
) -> ScoredSets:
    """Find the sets of the most probable sequences, each with its best sequence's probability."""
    sequences = search_sequences(decoder, encoding, beam_width, max_labels)
    label_sets, is_distinct = distinct_sets(sequences)
    log_probs = sequences.log_probs[:, 0].masked_fill(~is_distinct, -torch.inf)
    return _ranked(label_sets, log_probs, sequences)


def _ranked(label_sets: Tensor, log_probs: Tensor, sequences: Sequences) -> ScoredSets:
    log_probs, best = log_probs.sort(dim=1, descending=True, stable=True)
    labels = label_sets.gather(1, best[..., None].expand_as(label_sets))
    return ScoredSets(labels, log_probs, sequences)


def distinct_sets(sequences: Sequences) -> tuple[Tensor, Tensor]:
    """Map each sequence of one search to its set, and mark the first of each set.

    Returns the sets (B, K, S), ascending, empty where repeated, and the marks (B, K).
    """
    labels = sequences.labels[:, 0]  # (B, K, S)
    last = torch.iinfo(labels.dtype).max
    sets = labels.where(labels >= 0, last).sort(dim=2).values
    is_equal = (sets[:, :, None] == sets[:, None]).all(3)  # (B, K, K)
    is_repeat = is_equal.tril(diagonal=-1).any(2)
    is_distinct = ~is_repeat & (sequences.log_probs[:, 0] > -torch.inf)
    sets = sets.where(sets < last, -1)
    return sets.masked_fill(~is_distinct[..., None], -1), is_distinct


def set_log_prob(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, beam_width: int
) -> Tensor:
    """Sum the probabilities of the orders found for each set (B, G, S): log p, (B, G).

    A lower bound: orders outside the beam are missed. Exact where the beam holds all orders.
    """
    orders = search_orders(decoder, encoding, label_sets, beam_width)
    return orders.log_probs.logsumexp(2)
