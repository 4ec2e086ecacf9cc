"""Where and how a system is trained, apart from its settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setrnn.progress import OnProgress, ignore_progress
from setrnn.systems.system import System


@dataclass(frozen=True)
class TrainOptions:
    """The device, what is kept on disk, and who is told about the progress."""

    device: str = "auto"
    run_folder: Path | None = None  # for checkpoints and logs; None keeps none
    resume: bool = False
    max_seconds: float | None = None  # no epoch begins that would probably exceed them
    on_progress: OnProgress = ignore_progress


@dataclass(frozen=True)
class Trained:
    """A trained system, and what is worth noting of its training."""

    system: System
    notes: dict[str, Any] = field(default_factory=dict)
