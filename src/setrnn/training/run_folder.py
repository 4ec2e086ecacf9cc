"""A training run on disk: its checkpoints and its logs. Nothing is pickled.

MODEL.run/
    last.safetensors      the state of the run: --resume continues from here
    epochs.csv            one row per epoch
    saved                 empty; there once the model of a finished run is written
    first/                the run of the network that this one starts from, if there is one
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from setrnn.config import check_same, flatten
from setrnn.data.disk import explain_failed_write, locked, remove_leftovers, whole_file
from setrnn.errors import ConfigError, ModelError
from setrnn.training.ranks import find_ranks

FORMAT = 1
LAST, EPOCHS, SAVED, FIRST = "last.safetensors", "epochs.csv", "saved", "first"
PLAN = "plan.json"  # of a training without a method, in the same place
BATCH_SIZE = "config.training.batch_size"
# Settings that may change when a run is resumed: they do not decide what was trained before.
CHANGEABLE = {
    BATCH_SIZE,
    "config.training.learning_rate",
    "config.training.clip_norm",
    "config.training.precision",
    "config.training.patience",
    "config.training.checkpoint_minutes",
    "config.training.valid_documents",
    "config.encoder.learning_rate",
}
_OURS = {LAST, EPOCHS, SAVED, FIRST}
_KEY = "setrnn"


@dataclass
class Position:
    """How far a run has come."""

    epoch: int = 0  # finished epochs
    batch: int = 0  # finished batches of the current epoch
    loss_sum: float = 0.0  # over the documents of these batches
    n_documents: int = 0  # in these batches
    best_epoch: int = 0  # counted from 1; 0 before the first, and without a valid part
    best_value: float = 0.0
    documents_per_second: float = 0.0  # in training, recently
    seconds: float = 0.0  # of the whole run
    is_finished: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)  # one row per epoch

    def start_epoch(self, epoch: int) -> None:
        """Move to the first batch of an epoch."""
        self.epoch, self.batch, self.n_documents, self.loss_sum = epoch, 0, 0, 0.0


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint: tensors, how far the run has come, and which run it is."""

    tensors: dict[str, Tensor]
    position: Position
    identity: dict[str, Any]


def run_folder_of(model: Path) -> Path:
    """Return the folder of the run of a model folder.

    Example:
        >>> from pathlib import Path
        >>> run_folder_of(Path("models/news")).name
        'news.run'
    """
    return model.with_name(model.name + ".run")


def has_run(folder: Path) -> bool:
    """Return whether a folder has a checkpoint to resume from."""
    return (folder / LAST).is_file()


@contextmanager
def only_trainer(folder: Path | None, wait: bool = False) -> Iterator[None]:
    """Keep other processes out of a run folder; raise BusyError if one trains there already.

    With `wait`, wait until it ends. None is no folder. Of several processes that train together,
    the first does this.
    """
    if folder is None or not find_ranks().is_first:
        yield
        return
    with locked(folder, wait, way_out=" Wait until it ends, or use another --out."):
        yield


def check_run(folder: Path, resume: bool) -> None:
    """Raise if no run can start in a folder, or be resumed there; nothing is changed."""
    names = list_names(folder)
    if PLAN in names:
        raise ModelError(
            f"{folder} holds the members of a model trained without a method. Remove it, or use "
            "another --out."
        )
    if any(name not in _OURS and not name.startswith(".") for name in names):
        raise ModelError(f"{folder} exists and is not a run of setrnn. Use another --out.")
    if resume or LAST not in names:
        return
    position = read_position(folder)
    if position.is_finished and SAVED in names:
        return
    what, way = f"an unfinished run (epoch {position.epoch + 1})", "continue"
    if position.is_finished:
        what, way = "a finished run whose model was not written", "write"
    raise ConfigError(f"{folder} holds {what}. Add --resume to {way} it, or remove the folder.")


def list_names(folder: Path) -> list[str]:
    """Return what a run folder holds; nothing if it does not exist."""
    if folder.exists() and not folder.is_dir():
        raise ModelError(f"{folder} is a file. Remove it, or use another --out.")
    return [each.name for each in folder.iterdir()] if folder.exists() else []


def mark_saved(folder: Path) -> None:
    """Note that the model of a finished run is written: the run may be replaced from now on."""
    with whole_file(folder / SAVED, " The model is written."):
        pass


class RunFolder:
    """The files of one run; the identity is all that decides what is trained.

    Of several processes that train together, the first writes them, and all read.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder, self.identity = folder, dict(identity)
        self._writes = find_ranks().is_first

    def find(self, resume: bool) -> Checkpoint | None:
        """Return the checkpoint to resume from, or None to start; nothing is changed yet.

        A run that was killed before its first checkpoint starts from the beginning too.
        """
        check_run(self.folder, resume)
        if not (resume and has_run(self.folder)):
            return None
        found = read_checkpoint(self.folder / LAST)
        check_same(self.folder, found.identity, self.identity, CHANGEABLE)
        before, now = flatten(found.identity), flatten(self.identity)
        if before.get(BATCH_SIZE) != now.get(BATCH_SIZE):
            found.position.start_epoch(found.position.epoch)
        return found

    def begin(self, checkpoint: Checkpoint | None) -> None:
        """Prepare the folder to continue from a checkpoint; without one, remove older files."""
        if not self._writes:
            return
        with explain_failed_write(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self.folder)
            # Without the checkpoint there is no run: a kill in between leaves no part of one.
            for name in (SAVED,) if checkpoint else (LAST, EPOCHS, SAVED):
                (self.folder / name).unlink(missing_ok=True)

    def save(self, tensors: dict[str, Tensor], position: Position) -> None:
        """Save the state of the run; a process that is killed leaves the last whole checkpoint."""
        if not self._writes:
            return
        from safetensors.torch import save

        tensors = {name: each.detach().cpu().contiguous() for name, each in tensors.items()}
        state = {
            "format": FORMAT,
            "position": asdict(position),
            "identity": self.identity,
            "checksum": _checksum(tensors),
        }
        way_out = " Earlier checkpoints are kept: free some space, and resume with --resume."
        with whole_file(self.folder / LAST, way_out) as stream:
            stream.write(save(tensors, metadata={_KEY: json.dumps(state)}))

    def write_epochs(self, history: list[dict[str, Any]]) -> None:
        """Write one row per epoch."""
        if not self._writes:
            return
        text = io.StringIO()
        writer = csv.DictWriter(text, list(history[0]))
        writer.writeheader()
        writer.writerows(history)
        with whole_file(self.folder / EPOCHS) as stream:
            stream.write(text.getvalue().encode())


def read_checkpoint(file: Path) -> Checkpoint:
    """Read a checkpoint, and check that it is complete."""
    with _opened(file) as (opened, state):
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        if state["checksum"] != _checksum(tensors):
            raise ValueError
        return Checkpoint(tensors, Position(**state["position"]), state["identity"])


def read_position(folder: Path) -> Position:
    """Read how far a run has come, without its tensors."""
    with _opened(folder / LAST) as (_, state):
        return Position(**state["position"])


@contextmanager
def _opened(file: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Open a checkpoint and read its state; raise ModelError if it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            state = json.loads((opened.metadata() or {})[_KEY])
            if state["format"] != FORMAT:
                raise ValueError
            yield opened, state
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{file} is damaged, or from another version of setrnn. Remove {file.parent} and train "
            "again."
        ) from error


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Return the finished epochs of a run; none if there is no run."""
    return read_position(folder).history if has_run(folder) else []


def _checksum(tensors: Mapping[str, Tensor]) -> int:
    """Return a number that changes with any bit of the tensors."""
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(name.encode(), checksum)
        checksum = zlib.crc32(np.ascontiguousarray(tensors[name].numpy()).data, checksum)
    return checksum
