"""Sequences that the model emits by itself in training, right or wrong, one label at a time."""

# B documents, V = labels + STOP

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from setrnn.data.batches import send
from setrnn.model.interfaces import Decoder, Encoding

# An untrained model emits almost all labels before STOP: a sequence is cut after this many times
# the steps that the true set needs, STOP included.
MOST_STEPS = 2


@dataclass(frozen=True)
class Step:
    """One step of each document's sequence."""

    log_probs: Tensor  # (B, V) before the step; 0 for documents that are no longer stepped
    chosen: Tensor  # (B,) a label or STOP
    is_open: Tensor  # (B,) False after STOP, and after the cut: the step does not count


def emit(
    decoder: Decoder, encoding: Encoding, set_sizes: Tensor, choose: Callable[[Tensor], Tensor]
) -> Iterator[Step]:
    """Emit one sequence per document, with gradients unless they are turned off.

    Args:
        decoder: gives log-probabilities, one step at a time.
        encoding: the documents.
        set_sizes: the sizes (B,) of the true sets, on the CPU; they decide where to cut.
        choose: returns an output (B,) for log-probabilities (B, V): `draw` or `take_best`.
    """
    B, stop, device = len(set_sizes), decoder.n_labels, encoding.memory.device
    n_steps = MOST_STEPS * (set_sizes + 1)
    most = send(n_steps, device)
    rows = torch.arange(B, device=device)  # the documents that are stepped
    state = decoder.start(encoding)
    chosen = torch.full((B,), stop, device=device)
    is_open = torch.ones_like(chosen, dtype=torch.bool)
    for number in range(int(n_steps.max())):
        is_open = is_open & (number < most)
        n_open = int(is_open.sum())
        if not n_open:
            return
        if 2 * n_open <= len(rows):  # only the long sequences are continued
            kept = is_open[rows].nonzero()[:, 0]
            rows, encoding = rows[kept], encoding.rows(kept)
            state = tuple(each[kept] for each in state)
        found, state = decoder.step(encoding, state, chosen[rows, None])
        log_probs = found.new_zeros(B, stop + 1).index_copy(0, rows, found[:, 0])
        chosen = choose(log_probs.detach()).where(is_open, stop)
        yield Step(log_probs, chosen, is_open)
        is_open = is_open & (chosen != stop)


def draw(log_probs: Tensor) -> Tensor:
    """Draw an output from its probability."""
    # The largest of log p + Gumbel noise is a draw from p.
    noise = -torch.empty_like(log_probs).exponential_().log()
    return (log_probs + noise).argmax(1)


def take_best(log_probs: Tensor) -> Tensor:
    """Take the most probable output."""
    return log_probs.argmax(1)
