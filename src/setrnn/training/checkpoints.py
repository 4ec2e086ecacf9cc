"""Checkpoints: one safetensors file each, written whole or not at all; nothing is pickled."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from setrnn.data.folders import whole_file
from setrnn.errors import DataError, ModelError

FORMAT = 1
_KEY = "setrnn"


@dataclass
class Position:
    """How far a run has come."""

    epoch: int = 0  # epochs that are done
    batch: int = 0  # batches of the next one that are done
    loss_sum: float = 0.0  # of these batches, over documents
    n_documents: int = 0  # in them
    best_epoch: int = 0  # counted from 1; 0 before the first, and without a valid part
    best_value: float = 0.0
    documents_per_second: float = 0.0  # in training, lately
    seconds: float = 0.0  # of the whole run
    is_finished: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)  # a row for each epoch

    def restart_epoch(self) -> None:
        """Go back to the first batch of the epoch in hand."""
        self.batch, self.n_documents, self.loss_sum = 0, 0, 0.0

    def end_epoch(self) -> None:
        """Go on to the next epoch."""
        self.epoch += 1
        self.restart_epoch()


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds: tensors, how far the run had come, and which run it is."""

    tensors: dict[str, Tensor]
    position: Position
    identity: dict[str, Any]


def write_checkpoint(file: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; where it cannot be, the one before stays."""
    from safetensors.torch import save

    tensors = {name: each.detach().cpu().contiguous() for name, each in checkpoint.tensors.items()}
    state = {
        "format": FORMAT,
        "position": asdict(checkpoint.position),
        "identity": checkpoint.identity,
        "checksum": _checksum(tensors),
    }
    try:
        with whole_file(file) as stream:
            stream.write(save(tensors, metadata={_KEY: json.dumps(state)}))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise DataError(
            f"{file} cannot be written: {error.strerror}. What was saved before is kept: make "
            "room, and go on with --resume."
        ) from error


def read_checkpoint(file: Path) -> Checkpoint:
    """Read a checkpoint, and check that it is whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            state = _state(opened.metadata())
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        if state["checksum"] != _checksum(tensors):
            raise _damaged(file)
        return Checkpoint(tensors, Position(**state["position"]), state["identity"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise _damaged(file) from error


def read_position(file: Path) -> Position:
    """Read how far a run has come, and nothing else."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            return Position(**_state(opened.metadata())["position"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise _damaged(file) from error


def _state(metadata: Mapping[str, str] | None) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((metadata or {})[_KEY])
    if state["format"] != FORMAT:
        raise ValueError
    return state


def _damaged(file: Path) -> ModelError:
    return ModelError(
        f"{file} is damaged, or of another version of setrnn. Remove {file.parent} and train anew."
    )


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    """Return a number that a changed bit changes."""
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(name.encode(), checksum)
        checksum = zlib.crc32(np.ascontiguousarray(tensors[name].numpy()).data, checksum)
    return checksum
