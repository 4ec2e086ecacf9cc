"""Where a network runs."""

from __future__ import annotations

import torch

from setrnn.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda")


def find_device(name: str) -> torch.device:
    """Return a device by its name: `auto` is the GPU where there is one."""
    if name not in DEVICES:
        raise ConfigError(f"There is no device '{name}'. Known: {', '.join(DEVICES)}.")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("There is no GPU that torch can use here. Use device cpu.")
    return torch.device(name)
