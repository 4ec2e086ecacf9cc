"""How the cores are shared among the batches under way."""

from __future__ import annotations

import torch

from setrnn.model.devices import find_device, n_cores


def usual_workers(device: str) -> int:
    """Count the batches to work on at once: one for each core; a GPU is best with one."""
    return n_cores() if find_device(device).type == "cpu" else 1


def set_threads(n_threads: int) -> None:
    """Let each batch have so many threads.

    Batches side by side beat threads that share one, which wait for each other at every step.
    """
    torch.set_num_threads(n_threads)
