"""Sequences that the model emits by itself in training, right or wrong, one label at a time."""

# B documents, C labels of the largest set, S labels and Q steps of the longest sequence,
# V = labels + STOP; sets and sequences are padded with -1

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setrnn.data.batches import send
from setrnn.model.dropout import without_dropout
from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives.objective import LabelSets
from setrnn.objectives.sampled_order import draw_index
from setrnn.search.replayed import Search, replay

# An untrained model emits almost all labels before STOP: a sequence is cut after this many times
# the steps that the true set needs, STOP included.
MOST_STEPS = 2


@dataclass(frozen=True)
class OwnSequences:
    """One sequence per document."""

    labels: Tensor  # (B, S) in the order of emission
    lengths: Tensor  # (B,) on the CPU: the number of labels
    n_steps: Tensor  # (B,) on the CPU: STOP is a step, but a sequence that was cut has none

    def mark_steps(self, n_steps: int) -> Tensor:
        """Mark the steps of each sequence among the first so many: (B, Q)."""
        is_step = torch.arange(n_steps) < self.n_steps[:, None]
        return send(is_step, self.labels.device)


def emit(
    search: Search, decoder: Decoder, encoding: Encoding, label_sets: LabelSets
) -> OwnSequences:
    """Emit one sequence per document by `draw` or `take_best`: without dropout, and no gradient.

    The gradient is that of `decoder.follow`, which takes all steps in one call.
    """
    with without_dropout(decoder):  # as orders are chosen
        labels = replay(search, decoder, encoding, label_sets.labels, 1)
    lengths = (labels >= 0).sum(1).cpu()
    n_steps = torch.minimum(lengths + 1, MOST_STEPS * (label_sets.sizes + 1))
    return OwnSequences(labels[:, : int(lengths.max())], lengths, n_steps)


def draw(decoder: Decoder, encoding: Encoding, label_sets: Tensor, beam_width: int) -> Tensor:
    """Draw each output from its probability; the sizes of the sets (B, C) decide where to cut."""
    return _emit(decoder, encoding, label_sets, draw_index)


def take_best(decoder: Decoder, encoding: Encoding, label_sets: Tensor, beam_width: int) -> Tensor:
    """Take the most probable output of each step; the sizes of the sets decide where to cut."""
    return _emit(decoder, encoding, label_sets, lambda log_probs: log_probs.argmax(1))


@torch.no_grad()
def _emit(
    decoder: Decoder, encoding: Encoding, label_sets: Tensor, choose: Callable[[Tensor], Tensor]
) -> Tensor:
    """Emit outputs until STOP, or until the cut: the labels (B, S)."""
    B, C = label_sets.shape
    stop, is_on_gpu = decoder.n_labels, label_sets.is_cuda
    most = MOST_STEPS * ((label_sets >= 0).sum(1) + 1)  # (B,)
    n_steps = min(MOST_STEPS * (C + 1), stop + 1)
    labels = label_sets.new_full((B, n_steps), -1)
    rows = torch.arange(B, device=labels.device)  # the documents that are stepped
    is_open = torch.ones(B, dtype=torch.bool, device=labels.device)
    state, previous = decoder.start(encoding), label_sets.new_full((B,), stop)
    for step in range(n_steps):
        log_probs, state = decoder.step(encoding, state, previous[:, None])
        chosen = choose(log_probs[:, 0])
        is_label = is_open & (chosen != stop)
        labels[rows, step] = chosen.where(is_label, -1)
        previous = chosen.where(is_label, stop)
        is_open = is_label & (step + 1 < most)
        if is_on_gpu:  # which waits for nothing
            continue
        kept = is_open.nonzero()[:, 0]
        if not len(kept):
            break
        if 2 * len(kept) <= len(rows):  # only the long sequences are continued
            rows, previous, is_open, most = (x[kept] for x in (rows, previous, is_open, most))
            encoding, state = encoding.rows(kept), tuple(each[kept] for each in state)
    return labels
