"""Algorithm 3: the most probable sets, from a search for sequences and one for each set's orders.

The sets may be restricted to those that contain given labels and lack others.
"""

# B documents, K beams, G distinct sets, S labels of the longest sequence, L labels,
# R present labels at most, A absent labels at most; sets are padded with -1

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.search.beam_search import Sequences, beam_search, search_orders, search_sequences
from setrnn.search.prefix_tree import (
    PrefixTree,
    can_share_prefixes,
    score_in_tree,
    search_in_tree,
    sum_in_tree,
)


@dataclass(frozen=True)
class Certificate:
    """What a search over sets knows about the sets it did not return."""

    is_proved: Tensor  # (B,) no set is more probable than the first
    pruned: Tensor  # (B,) probability that was pruned: a set has at most this beyond its own
    left: Tensor  # (B,) probability of the sets that are larger than the search looked at
    dropped: Tensor  # (B,) log-probability of the best set that was found but not returned


@dataclass(frozen=True)
class ScoredSets:
    """Distinct sets of each document, in descending order of probability."""

    labels: Tensor  # (B, G, S) ascending
    log_probs: Tensor  # (B, G) -inf where a document has fewer than G sets
    sequences: Sequences | None = None  # (B, 1, K, S) where a search for sequences found them
    certificate: Certificate | None = None  # where a search over sets found them
    label_probs: Tensor | None = None  # (B, L) p(label), where it was estimated


def most_probable_sets(
    decoder: Decoder,
    encoding: Encoding,
    beam_width: int,
    max_labels: int,
    n_sets: int | None = None,
) -> ScoredSets:
    """Find the most probable sets (Algorithm 3): all that the search proposes, or the best.

    If only the `n_sets` best are wanted, sets that cannot be among them may be left out.
    """
    if not can_share_prefixes(decoder, encoding):
        sequences = search_sequences(decoder, encoding, beam_width, max_labels)
        return score_sets(decoder, encoding, sequences, beam_width)
    tree = PrefixTree.of(decoder, encoding)
    sequences = _search_sequences(tree, beam_width, max_labels)
    label_sets, is_distinct = distinct_sets(sequences)
    masses = _sum_by_set(sequences, is_distinct)
    log_probs = score_in_tree(tree, label_sets, masses, beam_width, n_sets or beam_width)
    return _rank(label_sets, log_probs, sequences)


def _search_sequences(tree: PrefixTree, beam_width: int, max_labels: int) -> Sequences:
    max_labels = min(max_labels, tree.decoder.n_labels)
    documents = torch.arange(len(tree.encoding.memory))
    labels, log_probs = search_in_tree(tree, documents, None, beam_width, max_labels)
    return Sequences(labels[:, None], log_probs[:, None])


def _sum_by_set(sequences: Sequences, is_distinct: Tensor) -> Tensor:
    """Sum the probabilities of the sequences of each distinct set: (B, K), -1 where repeated."""
    sets = sequences.labels[:, 0].sort(dim=2).values
    is_equal = (sets[:, :, None] == sets[:, None]).all(3)  # (B, K, K)
    probs = sequences.log_probs[:, 0].exp()
    return (is_equal * probs[:, None]).sum(2).masked_fill(~is_distinct, -1.0)


def most_probable_completions(
    decoder: Decoder,
    encoding: Encoding,
    present: Tensor,
    absent: Tensor,
    beam_width: int,
    max_labels: int,
) -> ScoredSets:
    """Find the most probable sets that contain all present labels and no absent label.

    Two searches propose sets, both without the absent labels. One emits the present labels
    first, in any order. The other is free, and finds the sets whose best orders have the present
    labels later. Each set is then scored by its own orders: known labels forbid sets, and change
    no probability. A document without known labels gets the result of Algorithm 3.

    Args:
        decoder: gives log-probabilities, one step at a time.
        encoding: the documents.
        present: the labels that a set must contain, (B, R), padded with -1.
        absent: the labels that a set must not contain, (B, A), padded with -1.
        beam_width: K, the number of sequences that each search keeps.
        max_labels: the largest number of labels in a set, at least R.
    """
    is_absent = mark_labels(absent, decoder.n_labels)
    found = _propose(decoder, encoding, present, is_absent, beam_width, max_labels)
    return score_sets(decoder, encoding, found, beam_width)


def _propose(
    decoder: Decoder,
    encoding: Encoding,
    present: Tensor,
    is_absent: Tensor,
    beam_width: int,
    max_labels: int,
) -> Sequences:
    """Search sequences of sets with all present labels (B, R) and no absent one (B, L)."""
    every = torch.arange(decoder.n_labels, device=present.device)
    choices = every.where(~is_absent, -1)[:, None]  # (B, 1, L)

    def search(first: Tensor | None) -> Sequences:
        return beam_search(decoder, encoding, choices, beam_width, False, max_labels, first)

    if not present.shape[1]:
        return search(None)
    begun = search(mark_labels(present, decoder.n_labels)[:, None])
    return _join(begun, _keep_containing(search(None), present))


@torch.no_grad()
def find_agreeing_sets(
    decoder: Decoder,
    encoding: Encoding,
    given: Tensor,
    log_weights: Tensor,
    n_sets: int,
    max_labels: int,
) -> tuple[Tensor, Tensor]:
    """Find the sets of largest weighted probability that agree with what is known.

    Returns distinct sets (B, G, S), padded with -1, and whether each is one, (B, G). The set of the
    given labels is the first.

    Args:
        decoder: gives log-probabilities, one step at a time.
        encoding: the documents.
        given: the labels that a set must contain, (B, R), padded with -1.
        log_weights: log w of each label, (B, L): 0 for given labels, -inf for absent ones.
        n_sets: the number of sets beside that of the given labels, and the width of the search.
        max_labels: the largest number of labels in a set, at least R.
    """
    found = _propose(decoder, encoding, given, log_weights == -torch.inf, n_sets, max_labels)
    sets, is_distinct = distinct_sets(found)  # (B, K, S)
    S = max(sets.shape[2], given.shape[1], 1)
    sets, first = (pad(each, (0, S - each.shape[-1]), value=-1) for each in (sets, given))
    is_first = (sets == first[:, None]).all(2)
    padded = pad(log_weights, (0, 1))[:, None].expand(-1, sets.shape[1], -1)
    weights = padded.gather(2, sets.where(sets >= 0, log_weights.shape[1])).sum(2)
    masses = _sum_by_set(found, is_distinct).clamp(min=0).log() + weights
    masses = masses.masked_fill(~is_distinct | is_first, -torch.inf)
    masses, best = masses.topk(min(n_sets, masses.shape[1]), dim=1)
    kept = sets.gather(1, best[..., None].expand(-1, -1, S))
    is_set = pad(masses > -torch.inf, (1, 0), value=True)
    return torch.cat((first[:, None], kept), dim=1), is_set


def best_sequences(
    decoder: Decoder, encoding: Encoding, beam_width: int, max_labels: int
) -> Sequences:
    """Find the most probable sequences: those that `most_probable_sets` begins with."""
    if can_share_prefixes(decoder, encoding):
        tree = PrefixTree.of(decoder, encoding)
        return _search_sequences(tree, beam_width, max_labels)
    return search_sequences(decoder, encoding, beam_width, max_labels)


def sets_of_sequences(sequences: Sequences) -> ScoredSets:
    """Return the distinct sets of sequences, each with its best sequence's probability."""
    label_sets, is_distinct = distinct_sets(sequences)
    log_probs = sequences.log_probs[:, 0].masked_fill(~is_distinct, -torch.inf)
    return _rank(label_sets, log_probs, sequences)


def score_sets(
    decoder: Decoder, encoding: Encoding, sequences: Sequences, beam_width: int
) -> ScoredSets:
    """Rank the sets of the sequences of one search, each by the orders found for it."""
    label_sets, is_distinct = distinct_sets(sequences)
    log_probs = set_log_prob(decoder, encoding, label_sets, beam_width)
    return _rank(label_sets, log_probs.masked_fill(~is_distinct, -torch.inf), sequences)


def set_log_prob(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, beam_width: int
) -> Tensor:
    """Sum the probabilities of the orders found for each set (B, G, S): log p, (B, G).

    This is a lower bound: orders outside the beam are missed. It is exact where the beam holds
    all orders.
    """
    if can_share_prefixes(decoder, encoding):
        tree = PrefixTree.of(decoder, encoding)
        return sum_in_tree(tree, label_sets, beam_width)
    orders = search_orders(decoder, encoding, label_sets, beam_width)
    return orders.log_probs.logsumexp(2)


def distinct_sets(sequences: Sequences) -> tuple[Tensor, Tensor]:
    """Map each sequence of one search to its set, and mark the first sequence of each set.

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


def _rank(label_sets: Tensor, log_probs: Tensor, sequences: Sequences) -> ScoredSets:
    log_probs, best = log_probs.sort(dim=1, descending=True, stable=True)
    labels = label_sets.gather(1, best[..., None].expand_as(label_sets))
    return ScoredSets(labels, log_probs, sequences)


def mark_labels(labels: Tensor, n_labels: int) -> Tensor:
    """Mark the labels of each row (B, R), padded with -1: (B, L)."""
    is_known = torch.zeros(len(labels), n_labels + 1, dtype=torch.bool, device=labels.device)
    is_known.scatter_(1, labels.where(labels >= 0, n_labels), True)
    return is_known[:, :n_labels]


def _keep_containing(sequences: Sequences, present: Tensor) -> Sequences:
    """Drop the sequences that lack a present label."""
    is_held = (sequences.labels[:, 0, :, :, None] == present[:, None, None]).any(2)  # (B, K, R)
    is_whole = (is_held | (present < 0)[:, None]).all(2)  # (B, K)
    log_probs = sequences.log_probs.masked_fill(~is_whole[:, None], -torch.inf)
    labels = sequences.labels.masked_fill(~is_whole[:, None, :, None], -1)
    return Sequences(labels, log_probs)


def _join(one: Sequences, other: Sequences) -> Sequences:
    """Rank the sequences of two searches, (B, 1, K, S) each, together."""
    S = max(one.labels.shape[3], other.labels.shape[3])
    labels = [pad(each.labels, (0, S - each.labels.shape[3]), value=-1) for each in (one, other)]
    log_probs = torch.cat((one.log_probs, other.log_probs), dim=2)
    log_probs, best = log_probs.sort(dim=2, descending=True, stable=True)
    joined = torch.cat(labels, dim=2)
    return Sequences(joined.gather(2, best[..., None].expand_as(joined)), log_probs)
