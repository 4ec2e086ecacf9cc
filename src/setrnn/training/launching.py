"""Start the processes that train one network together, or join those that torchrun has started."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from setrnn.errors import ConfigError, TrainingError
from setrnn.model.devices import count_gpus, limited_threads, n_cores, threads_of_jobs
from setrnn.training.following import follow
from setrnn.training.pool import (
    describe_death,
    describe_error,
    ignored_interrupts,
    stop_with_parent,
    threads_in_children,
)
from setrnn.training.ranks import ALONE, LostError, Ranks

if TYPE_CHECKING:
    from torch.distributed import Store  # type: ignore[attr-defined]

# A process that is killed is missed at once. One that does not answer is given up after this time.
PATIENCE = timedelta(minutes=10)
PAUSE = 0.05  # seconds between two looks
LEAVING_SECONDS = 10.0  # for a process to end by itself
ADDRESS = "127.0.0.1"
_DEVICE, _OVER = "device", "over"  # what the first process tells the others before they connect


@dataclass(frozen=True)
class Torchrun:
    """The place of this process among those that torchrun has started."""

    rank: int
    n: int
    n_here: int  # on this machine
    rank_here: int


def find_torchrun() -> Torchrun | None:
    """Return the place of this process; None if torchrun has not started it."""
    if not dist.is_available() or not dist.is_torchelastic_launched():
        return None
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_RANK")
    return Torchrun(*(int(os.environ[name]) for name in names))


def check_processes(n: int, device: torch.device) -> None:
    """Raise if `n` processes cannot train here."""
    found = find_torchrun()
    if n < 1:
        raise ConfigError(f"devices must be 1 or more, got {n}.")
    if n == 1:
        return
    if not dist.is_available():
        raise ConfigError("This build of torch cannot train on several devices. Omit --devices.")
    if found is not None and n != found.n:
        raise ConfigError(f"torchrun has started {found.n} processes, not {n}. Omit --devices.")
    n_here = n if found is None else found.n_here
    if device.type == "cuda" and n_here > count_gpus():
        raise ConfigError(f"There are {count_gpus()} GPUs here, not {n_here}. Use fewer devices.")
    if device.type == "cpu" and found is None and n > max(n_cores(), 2):
        raise ConfigError(f"There are {n_cores()} cores here, too few for {n} processes.")


@contextmanager
def several_processes(n: int, device: torch.device) -> Iterator[Ranks]:
    """Yield the place of this process, the first, among `n` that train together.

    They are started here and end with the training, unless torchrun has started them. On a CPU
    they share the cores.
    """
    if n == 1:
        yield ALONE
        return
    found = find_torchrun()
    n_here = n if found is None else found.n_here
    with limited_threads(threads_of_jobs(n_here)), _children(n, found) as (store, children):
        failures = _Failures(store, n, children)
        store.set(_DEVICE, device.type)
        _wait_until(lambda: failures.check() or store.check([_here(k) for k in range(1, n)]))
        try:
            with _group(store, Ranks(0, n), device):
                yield Ranks(0, n)
        except LostError as error:
            raise failures.explain(error) from error


@contextmanager
def leading(found: Torchrun | None) -> Iterator[None]:
    """Let the other processes of torchrun end with this one, also if it trains nothing."""
    try:
        yield
    finally:
        if found is not None:
            with suppress(RuntimeError):  # torchrun itself may have ended
                _open_torchrun().set(_OVER, "")


def help_torchrun(found: Torchrun) -> None:
    """Train with the process of rank 0, as one of those that torchrun has started."""
    _help(_open_torchrun(), Ranks(found.rank, found.n), found.rank_here)


def _open_torchrun() -> Store:
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]
    from torch.distributed.rendezvous import rendezvous

    store, _, _ = next(rendezvous("env://"))
    return PrefixStore("setrnn", store)


@contextmanager
def _children(n: int, found: Torchrun | None) -> Iterator[tuple[Store, dict[int, SpawnProcess]]]:
    """Start the other processes, by their rank; none under torchrun."""
    if found is not None:
        yield _open_torchrun(), {}
        return
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    store = TCPStore(ADDRESS, 0, is_master=True, wait_for_workers=False)
    context = multiprocessing.get_context("spawn")
    children = {
        rank: context.Process(target=_start_child, args=(store.port, rank, n), daemon=True)
        for rank in range(1, n)
    }
    try:
        with threads_in_children(torch.get_num_threads()), ignored_interrupts():
            for child in children.values():
                child.start()
        yield store, children
        for child in children.values():
            child.join(LEAVING_SECONDS)
    finally:
        for child in children.values():
            if child.pid is not None:
                child.kill()
                child.join()


def _start_child(port: int, rank: int, n: int) -> None:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    threading.Thread(target=stop_with_parent, daemon=True).start()
    with suppress(Exception, KeyboardInterrupt):  # the first process says what happened
        _help(TCPStore(ADDRESS, port, is_master=False), Ranks(rank, n), rank)


def _help(store: Store, ranks: Ranks, rank_here: int) -> None:
    """Wait for the first process, then train with it; tell it of a failure."""
    try:
        _wait_until(lambda: store.check([_DEVICE]) or store.check([_OVER]), patience=None)
        if not store.check([_DEVICE]):
            return
        device = torch.device(store.get(_DEVICE).decode())
        if device.type == "cuda":
            if rank_here >= count_gpus():
                raise ConfigError(f"There are {count_gpus()} GPUs here, no number {rank_here + 1}.")
            device = torch.device("cuda", rank_here)
        store.set(_here(ranks.rank), "")
        with _group(store, ranks, device):
            follow(ranks, device)
    except LostError:
        raise
    except Exception as error:
        with suppress(RuntimeError):  # the first process may have ended
            store.set(_failed(ranks.rank), json.dumps(describe_error(error).message))
        raise


@contextmanager
def _group(store: Store, ranks: Ranks, device: torch.device) -> Iterator[None]:
    """Connect the processes: numbers on the CPU go through gloo, gradients on GPUs through NCCL."""
    is_on_gpu = device.type == "cuda"
    if is_on_gpu:
        torch.cuda.set_device(device.index or 0)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if is_on_gpu else "gloo",
        store=store,
        rank=ranks.rank,
        world_size=ranks.n,
        timeout=PATIENCE,
    )
    is_lost = False
    try:
        yield
    except LostError:
        is_lost = True
        raise
    finally:
        if not (is_lost and is_on_gpu):  # NCCL would wait for the lost process
            dist.destroy_process_group()


@dataclass
class _Failures:
    """Why other processes have ended."""

    store: Store
    n: int
    children: dict[int, SpawnProcess]

    def check(self) -> bool:
        """Raise if one of them has ended before the training; return False."""
        text = self._find()
        if text is not None:
            raise TrainingError(f"{text} Training has not begun.")
        return False

    def explain(self, error: LostError) -> TrainingError:
        """Return the error with the process that ended and its reason, if they are known."""
        deadline = time.monotonic() + 1.0  # a process that was killed takes a moment to end
        while (text := self._find()) is None and self.children and time.monotonic() < deadline:
            time.sleep(PAUSE)
        if text is None:
            return error
        return TrainingError(f"{text} The run is kept up to its last checkpoint: use --resume.")

    def _find(self) -> str | None:
        for rank in range(1, self.n):
            if self.store.check([_failed(rank)]):
                message = json.loads(self.store.get(_failed(rank)))
                return f"Process {rank + 1} of {self.n} failed: {message}"
        for rank, child in self.children.items():
            if child.exitcode is not None:
                message = describe_death(child.exitcode).message
                return f"Process {rank + 1} of {self.n} has ended: {message}"
        return None


def _wait_until(is_true: Callable[[], bool], patience: timedelta | None = PATIENCE) -> None:
    """Look again and again; Ctrl-C is heard in between."""
    start = time.monotonic()
    while not is_true():
        if patience is not None and time.monotonic() - start > patience.total_seconds():
            raise LostError(
                "Not all processes of the training have started within "
                f"{patience.total_seconds() / 60:.0f} minutes. Training has not begun."
            )
        time.sleep(PAUSE)


def _here(rank: int) -> str:
    return f"here/{rank}"


def _failed(rank: int) -> str:
    return f"failed/{rank}"
