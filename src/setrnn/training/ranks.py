"""Several processes that train one network: torchrun starts them, torch.distributed connects them.

    torchrun --nproc-per-node 8 -m setrnn train DATA --method set-rnn --out MODEL

All processes do the same: each reads the data, computes the gradient of its pieces of every batch,
and adds up all gradients, so that all have the same weights after every step. Only the first
process, of rank 0, writes files and talks to the user.

Gradients are added up by one all-reduce per step. DistributedDataParallel does not fit: it expects
one call of `forward` before each backward pass, but an objective calls the decoder several times,
and on a CPU the gradients of pieces are computed in copies of the network, without its hooks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from setrnn.errors import ConfigError, TrainingError

# torchrun ends all processes when one is killed; this is for one that does not answer.
PATIENCE = timedelta(hours=2)


@dataclass(frozen=True)
class Ranks:
    """The place of this process among `n`; a process alone waits for nobody.

    All processes must call the same methods in the same order.

    Example:
        >>> from setrnn.training.ranks import ALONE
        >>> ALONE.any(False), ALONE.deal([5, 6, 7])
        (False, [5, 6, 7])
    """

    rank: int = 0
    n: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files."""
        return self.rank == 0

    def any(self, claim: bool) -> bool:
        """Return whether a claim is true in any process."""
        if self.n == 1:
            return claim
        found = torch.tensor([int(claim)])
        with _explain_loss():
            dist.all_reduce(found, dist.ReduceOp.MAX)
        return bool(found)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over all processes, which have the same bits in each."""
        total = torch.cat([each.flatten() for each in tensors])
        with _explain_loss():
            dist.all_reduce(total)
        parts = torch.split(total, [each.numel() for each in tensors])
        for each, part in zip(tensors, parts, strict=True):
            each.copy_(part.view_as(each))

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by those of the first process."""
        if self.n > 1:
            with _explain_loss():
                for each in tensors:
                    dist.broadcast(each, 0)

    def deal(self, items: Any) -> Any:  # noqa: ANN401 (a list or an array)
        """Return the share of this process in some items: every n-th of them."""
        return items[self.rank :: self.n]

    def collect(self, own: Sequence[Any]) -> list[Any]:
        """Return what all processes found for the items that were dealt."""
        if self.n == 1:
            return list(own)
        parts: list[Any] = [None] * self.n
        with _explain_loss():
            dist.all_gather_object(parts, list(own))
        found: list[Any] = [None] * sum(map(len, parts))
        for rank, part in enumerate(parts):
            found[rank :: self.n] = part
        return found


ALONE = Ranks()


def find_ranks() -> Ranks:
    """Return the place of this process among those that are connected."""
    if dist.is_available() and dist.is_initialized():
        return Ranks(dist.get_rank(), dist.get_world_size())
    return ALONE


@contextmanager
def connected(device: str) -> Iterator[Ranks]:
    """Connect the processes that torchrun has started; without torchrun, do nothing."""
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield ALONE
        return
    if device == "mps":
        raise ConfigError("torchrun needs GPUs of NVIDIA, or --device cpu. Train without it.")
    is_on_gpu = device != "cpu" and torch.cuda.is_available()
    if is_on_gpu:
        own = int(os.environ["LOCAL_RANK"])
        if own >= torch.cuda.device_count():
            raise ConfigError(
                f"There are {torch.cuda.device_count()} GPUs here, fewer than processes. Use a "
                "smaller --nproc-per-node."
            )
        torch.cuda.set_device(own)
    # Numbers on the CPU go through gloo, gradients on GPUs through NCCL.
    dist.init_process_group("cpu:gloo,cuda:nccl" if is_on_gpu else "gloo", timeout=PATIENCE)
    yield find_ranks()
    dist.destroy_process_group()  # after an error, it would wait for a process that is lost


@contextmanager
def _explain_loss() -> Iterator[None]:
    """Raise TrainingError if the other processes cannot be reached."""
    try:
        yield
    except RuntimeError as error:  # of gloo and of NCCL
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise TrainingError(
            "Another process of this training has ended or does not answer. The run is kept up to "
            "its last checkpoint: resume with --resume."
        ) from error
