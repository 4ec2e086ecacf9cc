"""The most probable sets that contain labels known to be right and none known to be wrong."""

# B documents, R present labels at most, A absent labels at most, L labels, K beams,
# G distinct sets, S labels of the longest sequence

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.search.beam_search import Sequences, beam_search
from setrnn.search.set_search import ScoredSets, score_sets


def most_probable_completions(
    decoder: Decoder,
    encoding: Encoding,
    present: Tensor,
    absent: Tensor,
    beam_width: int,
    max_labels: int,
) -> ScoredSets:
    """Find the most probable sets with all present labels and no absent one.

    Sets are proposed by two searches, both without the absent labels: one that emits the present
    labels first, in the orders the model likes best, and a free one, which finds the sets whose
    best orders have them later. Each set is then scored by its own orders, as ever: what is known
    only forbids. A document of which nothing is known gets what Algorithm 3 gives.

    Args:
        decoder: gives log-probabilities, a step at a time.
        encoding: the documents.
        present: what a set must contain, (B, R); -1 fills up.
        absent: what it must not contain, (B, A); -1 fills up.
        beam_width: K, how many sequences each search keeps.
        max_labels: the most labels a set may have, at least R.
    """
    is_present = _marked(present, decoder.n_labels)  # (B, L)
    every = torch.arange(decoder.n_labels, device=present.device)
    choices = every.where(~_marked(absent, decoder.n_labels), -1)[:, None]  # (B, 1, L)

    def search(first: Tensor | None) -> Sequences:
        return beam_search(decoder, encoding, choices, beam_width, False, max_labels, first)

    if not present.shape[1]:
        return score_sets(decoder, encoding, search(None), beam_width)
    begun, free = search(is_present[:, None]), search(None)
    found = _joined(begun, _containing(free, present))
    return score_sets(decoder, encoding, found, beam_width)


def _marked(labels: Tensor, n_labels: int) -> Tensor:
    """Mark the labels of each row (B, R), which -1 fills up: (B, L)."""
    is_known = torch.zeros(len(labels), n_labels + 1, dtype=torch.bool, device=labels.device)
    is_known.scatter_(1, labels.where(labels >= 0, n_labels), True)
    return is_known[:, :n_labels]


def _containing(sequences: Sequences, present: Tensor) -> Sequences:
    """Drop the sequences that lack a present label."""
    is_held = (sequences.labels[:, 0, :, :, None] == present[:, None, None]).any(2)  # (B, K, R)
    is_whole = (is_held | (present < 0)[:, None]).all(2)  # (B, K)
    log_probs = sequences.log_probs.masked_fill(~is_whole[:, None], -torch.inf)
    labels = sequences.labels.masked_fill(~is_whole[:, None, :, None], -1)
    return Sequences(labels, log_probs)


def _joined(one: Sequences, other: Sequences) -> Sequences:
    """Rank the sequences of two searches, (B, 1, K, S) each, together."""
    S = max(one.labels.shape[3], other.labels.shape[3])
    labels = [pad(each.labels, (0, S - each.labels.shape[3]), value=-1) for each in (one, other)]
    log_probs = torch.cat((one.log_probs, other.log_probs), dim=2)
    log_probs, best = log_probs.sort(dim=2, descending=True, stable=True)
    joined = torch.cat(labels, dim=2)
    return Sequences(joined.gather(2, best[..., None].expand_as(joined)), log_probs)
