"""What the processes that train one network together tell each other.

Each process computes the gradient of its pieces of every batch, and adds up all gradients, so that
all have the same weights after every step. The first process, of rank 0, reads the data, decides
when to stop, writes the run and the model, and talks to the user.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from setrnn.errors import TrainingError

Array = npt.NDArray[Any]


class LostError(TrainingError):
    """Another process of the same training has ended, or cannot be reached."""


@dataclass(frozen=True)
class Ranks:
    """One of `n` processes; a process alone waits for nobody.

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
        """Whether this process decides and writes."""
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
        if self.n == 1:
            return
        total = torch.cat([each.flatten() for each in tensors])
        with _explain_loss():
            dist.all_reduce(total)
        parts = torch.split(total, [each.numel() for each in tensors])
        for each, part in zip(tensors, parts, strict=True):
            each.copy_(part.view_as(each))

    def share(self, content: bytes = b"") -> bytes:
        """Return the content that the first process gives."""
        size = torch.tensor([len(content)])
        with _explain_loss():
            dist.broadcast(size, 0)
            data = _as_tensor(content, int(size)) if self.is_first else _as_tensor(b"", int(size))
            dist.broadcast(data, 0)
        return data.numpy().tobytes()

    def deal(self, items: Any) -> Any:  # noqa: ANN401 (a list or an array)
        """Return the share of this process in some items: every n-th of them."""
        return items[self.rank :: self.n]

    def collect(self, own: Sequence[Array], dtype: npt.DTypeLike) -> list[Array]:
        """Return what all processes found for the items that were dealt, one array (k,) each."""
        if self.n == 1:
            return list(own)
        values = np.concatenate([np.empty(0, dtype), *own]).astype(dtype)
        sizes = np.array([len(each) for each in own], dtype=np.int64)
        all_values, all_sizes = (self._gather(each.tobytes()) for each in (values, sizes))
        found: list[Array] = [values] * (sum(map(len, all_sizes)) // sizes.itemsize)
        for rank, (part, lengths) in enumerate(zip(all_values, all_sizes, strict=True)):
            ends = np.frombuffer(lengths, np.int64).cumsum()
            found[rank :: self.n] = np.split(np.frombuffer(part, dtype), ends)[:-1]
        return found

    def _gather(self, content: bytes) -> list[bytes]:
        """Return the contents of all processes."""
        sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.n)]
        with _explain_loss():
            dist.all_gather(sizes, torch.tensor([len(content)]))
            most = max(int(each) for each in sizes)
            data = [_as_tensor(b"", most) for _ in range(self.n)]
            dist.all_gather(data, _as_tensor(content, most))
        return [each[: int(size)].numpy().tobytes() for each, size in zip(data, sizes, strict=True)]


ALONE = Ranks()


def _as_tensor(content: bytes, size: int) -> Tensor:
    """Return bytes as a tensor of a given size."""
    tensor = torch.zeros(size, dtype=torch.uint8)
    if content:
        tensor[: len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    return tensor


@contextmanager
def _explain_loss() -> Iterator[None]:
    """Raise LostError if the other processes cannot be reached."""
    try:
        yield
    except RuntimeError as error:  # of gloo and of NCCL
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise LostError(
            "Another process of this training has ended or does not answer. The run is kept up to "
            "its last checkpoint: resume with --resume."
        ) from error
