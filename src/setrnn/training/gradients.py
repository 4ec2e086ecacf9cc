"""The gradient of a batch; each process, and on a CPU each thread, computes that of a piece of it.

Threads that share every operation wait for each other thousands of times per step, which is slow
when another program uses one of the cores. Threads with a piece each wait once per step.

Documents of several windows are read a few at a time, and their gradients are added: a step needs
about as much memory as one with documents of one window.
"""

# B documents of a batch, T words of the longest

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from setrnn.data.batches import Batch
from setrnn.model.devices import thread_pool
from setrnn.model.dropout import draw_from
from setrnn.model.network import Network
from setrnn.objectives import LabelSets, Objective
from setrnn.objectives.agreeing import sum_agreeing
from setrnn.training.ranks import ALONE, Ranks

# A smaller piece is not worth a thread: starting its operations takes longer than computing them.
LEAST_DOCUMENTS = 8
LEAST_WORK = 1 << 23  # documents times weights, apart from tables of vectors


class Gradients:
    """Computes the gradients of a network's weights.

    The number of pieces per process is at most the number of torch's threads when it was made. The
    number of all pieces decides the bits of the result; which thread or, of two, which process
    computes a piece does not.
    """

    def __init__(
        self,
        network: Network,
        device: torch.device,
        objective: Objective,
        n_orders: int,
        precision: str = "float32",
        ranks: Ranks = ALONE,
    ) -> None:
        self.network, self.device, self.objective = network, device, objective
        self.n_orders, self.precision, self.ranks = n_orders, precision, ranks
        self.n_pieces = torch.get_num_threads() if device.type == "cpu" else 1
        n_weights = max(_count_weights(network), 1)
        self.least_documents = max(LEAST_DOCUMENTS, -(-LEAST_WORK // n_weights))  # of a piece
        self._twins: list[_Twin] = []
        self._threads: ThreadPoolExecutor | None = None
        self._draws_in_order: bool | None = None  # None until the first batch

    def cut(
        self, rows: npt.NDArray[np.int64], set_sizes: npt.NDArray[np.int64]
    ) -> list[npt.NDArray[np.int64]]:
        """Cut the rows (B,) of a batch into pieces with about equally large sets, of sizes (B,).

        Return those of this process: as many as every other has, or none if there are too few rows.
        """
        n = self.ranks.n
        n_pieces = n * max(min(self.n_pieces, len(rows) // (n * self.least_documents)), 1)
        order = np.argsort(set_sizes, kind="stable")
        pieces = (order[first::n_pieces] for first in self.ranks.deal(range(n_pieces)))
        return [rows[np.sort(piece)] for piece in pieces if len(piece)]

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Compute the pieces in threads, with one thread each; without, one after the other."""
        if self.n_pieces == 1:
            yield
            return
        with thread_pool(self.n_pieces) as threads:
            self._threads = threads
            try:
                yield
            finally:
                self._threads = None

    def compute(self, pieces: Sequence[Batch], n_documents: int | None = None) -> Tensor:
        """Compute the gradients of the mean of -objective over the documents; return the mean.

        The pieces are those of this process, of a batch of `n_documents` (None: of all of them).
        """
        n_documents = n_documents or sum(len(each) for each in pieces)
        seeds = self._draw_seeds(len(pieces))
        if self.ranks.n == 1:
            return self._compute(pieces, n_documents, seeds)
        with torch.random.fork_rng(devices=[]):  # the generators of all processes stay the same
            torch.manual_seed(seeds[0])
            loss = self._compute(pieces, n_documents, seeds)
        trained = [each for each in self.network.parameters() if each.requires_grad]
        for each in trained:
            each.grad = torch.zeros_like(each) if each.grad is None else each.grad
        self.ranks.add_up([each.grad for each in trained if each.grad is not None] + [loss])
        return loss

    def _draw_seeds(self, n_pieces: int) -> list[int]:
        """Draw the seeds of the pieces of this process; one if it has none.

        All random numbers depend on torch's generator, whose state a checkpoint holds.
        """
        seeds = torch.randint(2**62, (self.ranks.n * max(n_pieces, 1),))
        return list(self.ranks.deal(seeds.tolist()))

    def _compute(self, pieces: Sequence[Batch], n_documents: int, seeds: Sequence[int]) -> Tensor:
        """Compute the gradients of some pieces, and their share in the mean."""
        if not pieces:
            return torch.zeros((), device=self.device)

        def forward(network: Network, batch: Batch) -> Tensor:
            is_low = self.precision == "bfloat16"
            with torch.autocast(self.device.type, torch.bfloat16, enabled=is_low):
                return _loss(network, batch, self.objective, self.n_orders) / n_documents

        def both(network: Network, piece: Batch) -> Tensor:
            parts = _cut_by_windows(piece, network)
            losses = [_backward(forward(network, part)) for part in parts]
            return sum(losses[1:], losses[0])

        if self.device.type != "cpu":
            (batch,) = pieces
            return both(self.network, batch)
        while len(self._twins) < len(pieces):
            self._twins.append(_Twin(self.network))
        twins = self._twins[: len(pieces)]
        for twin, seed in zip(twins, seeds, strict=True):
            twin.generator.manual_seed(seed)
        jobs = [(twin.network, piece) for twin, piece in zip(twins, pieces, strict=True)]
        has_parts = any(len(_cut_by_windows(each, self.network)) > 1 for each in pieces)
        in_order = self._draws_in_order
        if self._threads is None or in_order is None or (has_parts and in_order):
            before = torch.get_rng_state()
            losses = [both(*job) for job in jobs]
            # Networks and objectives from elsewhere may draw from torch's generator.
            self._draws_in_order = not torch.equal(before, torch.get_rng_state())
        elif in_order:
            losses = _share(self._threads, (partial(_backward, forward(*job)) for job in jobs))
        else:
            losses = _share(self._threads, (partial(both, *job) for job in jobs))
        self._add_up(twins)
        return torch.stack(losses).sum()

    def _add_up(self, twins: Sequence[_Twin]) -> None:
        """Add the gradients of the pieces, in their order."""
        for parameter, *others in zip(
            self.network.parameters(), *(twin.parameters for twin in twins), strict=True
        ):
            found = [each.grad for each in others if each.grad is not None]
            for each in others:
                each.grad = None
            for each in found[1:]:
                found[0] += each
            parameter.grad = found[0] if found else None


class _Twin:
    """A copy of a network with the same weights in memory, other gradients and a generator.

    A thread has one for itself, because a module cannot be in training and not in training at
    the same time.
    """

    def __init__(self, network: Network) -> None:
        same: dict[int, Tensor] = {id(each): each for each in network.buffers()}
        for each in network.parameters():
            same[id(each)] = nn.Parameter(each.detach(), each.requires_grad)
        self.network = deepcopy(network, same)
        self.parameters = list(self.network.parameters())
        self.generator = torch.Generator()
        draw_from(self.generator, self.network)


def _count_weights(network: nn.Module) -> int:
    """Count the weights that take part in the products for every document."""
    modules = (each for each in network.modules() if not isinstance(each, nn.Embedding))
    return sum(each.numel() for module in modules for each in module.parameters(recurse=False))


def _cut_by_windows(batch: Batch, network: Network) -> list[Batch]:
    """Cut a batch (B, T) into parts with at most B windows each, if documents have several."""
    B, T = batch.tokens.shape
    if network.window is None or network.window >= T:
        return [batch]
    at_once = max(B * network.window // T, 1)
    return [batch.part(start, start + at_once) for start in range(0, B, at_once)]


def _loss(network: Network, batch: Batch, objective: Objective, n_orders: int) -> Tensor:
    """Find orders of each set; return the sum of -log p(s | x) over the documents."""
    encoding = network.encode(batch)
    sets = LabelSets(batch.labels, batch.set_sizes, batch.documents, batch.weights)
    if batch.log_weights is None:
        values = objective(network.decoder, encoding, sets, n_orders)  # (B,)
    else:
        values = sum_agreeing(
            objective, network.decoder, encoding, sets, batch.log_weights, n_orders
        )
    return -values.sum()


def _backward(loss: Tensor) -> Tensor:
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach()


def _share(threads: ThreadPoolExecutor, works: Iterable[Callable[[], Tensor]]) -> list[Tensor]:
    """Do all works in threads, each as soon as the iterable gives it; return their results."""
    return [each.result() for each in [threads.submit(work) for work in works]]
