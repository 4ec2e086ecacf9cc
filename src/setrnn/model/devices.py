"""Devices that a network runs on, the cores of the CPU, and networks without values."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from setrnn.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda")


def find_device(name: str) -> torch.device:
    """Return a device by its name; `auto` is the GPU if there is one."""
    if name not in DEVICES:
        raise ConfigError(f"There is no device '{name}'. Known: {', '.join(DEVICES)}.")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("There is no GPU that torch can use here. Use device cpu.")
    return torch.device(name)


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_of_jobs(n_jobs: int) -> int:
    """Return the threads of each of several jobs that share the cores; those that the user set."""
    if "OMP_NUM_THREADS" in os.environ:
        return torch.get_num_threads()
    return max(1, n_cores() // n_jobs)


@contextmanager
def limited_threads(n_threads: int) -> Iterator[None]:
    """Compute with so many threads; another number may give other bits."""
    n_before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(n_before)


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
