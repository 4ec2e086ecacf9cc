"""Where and how a system is trained, beside its settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from setrnn.training.progress import OnProgress


@dataclass(frozen=True)
class TrainOptions:
    """The device, what is kept on disk, and who is told what."""

    device: str = "auto"
    run_folder: Path | None = None  # checkpoints and logs; none are kept without
    resume: bool = False
    max_seconds: float | None = None  # no epoch begins that would probably end after them
    on_labels: Callable[[int], None] = lambda n_labels: None  # classical systems
    on_progress: OnProgress = lambda progress: None  # recurrent ones
    on_vectors: Callable[[str, float], None] = lambda message, share: None
