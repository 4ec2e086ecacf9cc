"""Devices that a network runs on, the cores of the CPU, and networks without values."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from setrnn.config import check_device_name
from setrnn.errors import ConfigError

CONTAINER_LIMIT = Path("/sys/fs/cgroup/cpu.max")  # microseconds of computing per period
# With one of them, the user (or a command of ours) has chosen how threads wait for each other.
WAITING_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
SHARED_SIZE = 1 << 18  # an operation on so many numbers is always shared by all threads


def find_device(name: str) -> torch.device:
    """Return a device by its name; `auto` is the GPU if there is one, of NVIDIA's kind."""
    check_device_name(name)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if not has_device(name):
        raise ConfigError("There is no GPU that torch can use here. Omit the device, or use cpu.")
    return torch.device(name)


def has_device(kind: str) -> bool:
    """Return whether torch can use a kind of device here: cpu, cuda, or mps of Apple's GPUs."""
    if kind == "mps":
        return torch.backends.mps.is_available()
    return kind != "cuda" or torch.cuda.is_available()


def sum_type(device: torch.device) -> torch.dtype:
    """Return the type of a sum over many batches: Apple's GPUs have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def count_gpus() -> int:
    """Return the number of GPUs that torch can use here."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def n_cores() -> int:
    """Return the number of cores that this process may use, also by a container's limit."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        allowed, period = CONTAINER_LIMIT.read_text().split()
        return min(n, math.ceil(int(allowed) / int(period)))
    except (OSError, ValueError):  # not in a container, or "max": no limit
        return n


def threads_of_jobs(n_jobs: int) -> int:
    """Return the threads of each of several jobs that share the cores; those that the user set."""
    if "OMP_NUM_THREADS" in os.environ:
        return torch.get_num_threads()
    return max(1, n_cores() // n_jobs)


@contextmanager
def limited_threads(n_threads: int) -> Iterator[None]:
    """Compute with so many threads; another number may give other bits."""
    n_before = torch.get_num_threads()
    if n_before == n_threads:  # the setting reaches into other threads: leave it if it is right
        yield
        return
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(n_before)


@contextmanager
def thread_pool(n_threads: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Yield threads of which each computes by itself: as many as torch uses, if no number is given.

    The result of a piece of work does not depend on their number.
    """
    n_threads = n_threads or torch.get_num_threads()
    with limited_threads(1):
        pool = ThreadPoolExecutor(n_threads, "setrnn", torch.set_num_threads, (1,))
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def patient_threads() -> Iterator[None]:
    """Let torch's threads sleep while they wait for each other, instead of spinning.

    A thread that spins uses its share of a core that is also used by another program; the thread
    with the work then waits, and all others with it: training is 5 to 20 times slower. The number
    of threads stays the same, and so do the bits.

    How threads wait is fixed when OpenMP is loaded, which may be long before. But GNU OpenMP, which
    torch has on Linux, spins only briefly as soon as a process has more of its threads than cores.
    So one more team of threads is started here, and sleeps until the end. Other OpenMP libraries
    wait as before.
    """
    n_threads = torch.get_num_threads()
    if n_threads == 1 or any(name in os.environ for name in WAITING_VARIABLES):
        yield
        return
    is_started, is_over = threading.Event(), threading.Event()

    def sleep_with_a_team() -> None:
        try:
            torch.set_num_threads(max(n_cores(), n_threads))
            torch.zeros(SHARED_SIZE).add_(1)
        finally:
            is_started.set()
        is_over.wait()

    sleeper = threading.Thread(target=sleep_with_a_team, name="setrnn-sleeper", daemon=True)
    sleeper.start()
    is_started.wait()
    torch.set_num_threads(n_threads)  # a part of the setting is shared by all threads
    try:
        yield
    finally:
        is_over.set()
        sleeper.join()


@contextmanager
def without_values() -> Iterator[None]:
    """Create tensors with a shape and no values, for modules whose weights are assigned later."""
    with torch.device("meta"), _NoInitialValues():
        yield


class _NoInitialValues(TorchFunctionMode):
    """Skip the drawing of normal values: on the meta device it imports torch's compiler (1 s)."""

    def __torch_function__(
        self,
        function: Any,  # noqa: ANN401 (any function of torch)
        types: Any,  # noqa: ANN401
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        options = options or {}
        return options["tensor"] if function is nn.init.normal_ else function(*arguments, **options)
