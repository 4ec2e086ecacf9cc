"""A training run on disk: its checkpoints and its logs.

MODEL.run/
    last.safetensors           where it stands: --resume goes on from here
    best-epoch-N.safetensors   the weights of the best epoch
    epochs.csv                 a row for each epoch
    events.out.tfevents...     the same, and the loss as it goes, for TensorBoard
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from setrnn.data.folders import whole_file
from setrnn.errors import ConfigError, DataError, ModelError
from setrnn.training.checkpoints import (
    Checkpoint,
    Position,
    read_checkpoint,
    read_position,
    write_checkpoint,
)
from setrnn.training.events import EventLog

LAST, EPOCHS = "last.safetensors", "epochs.csv"
# What a run may be resumed with another value of: it decides how training goes on, not what
# was trained so far.
CHANGEABLE = {
    f"config.training.{name}"
    for name in (
        "learning_rate",
        "clip_norm",
        "precision",
        "patience",
        "checkpoint_minutes",
        "valid_documents",
        "batch_size",
    )
} | {"config.encoder.learning_rate"}
BATCH_SIZE = "config.training.batch_size"
_OURS = re.compile(
    r"(last\.safetensors|best-epoch-\d+\.safetensors|epochs\.csv|events\.out\.tfevents\..*)"
)
_CUT_SHORT = re.compile(r"\.(last|best-epoch-\d+|epochs)\.(safetensors|csv)\.[0-9a-f]{8}")


def run_folder_of(model: Path) -> Path:
    """Return where the run of a model folder is kept."""
    return model.with_name(model.name + ".run")


def has_run(folder: Path) -> bool:
    """Tell whether there is a checkpoint to go on from."""
    return (folder / LAST).is_file()


class RunFolder:
    """The files of one run."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        """Name the folder, and what decides how its run goes."""
        self.folder = folder
        self.identity = dict(identity)
        self._events: EventLog | None = None
        self._saved_best = 0

    def find(self, resume: bool) -> Checkpoint | None:
        """Return the checkpoint to go on from, or None to start anew; nothing is changed yet.

        A run that was killed before its first checkpoint starts anew too.
        """
        self._refuse_other_folder()
        last = self.folder / LAST
        if not last.is_file():
            return None
        if resume:
            found = read_checkpoint(last)
            before, now = _flat(found.identity), _flat(self.identity)
            self._check_same_run(before, now)
            if before.get(BATCH_SIZE) != now.get(BATCH_SIZE):
                found.position.restart_epoch()
            return found
        position = read_position(last)
        if not position.is_finished:
            raise ConfigError(
                f"{self.folder} holds an unfinished run (epoch {position.epoch + 1}). "
                "Add --resume to go on with it, or remove the folder."
            )
        return None

    def begin(self, checkpoint: Checkpoint | None, first_step: int) -> None:
        """Go on from a checkpoint, or clear what is left of a run before."""
        with self._writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for file in self.folder.iterdir():
                is_old = checkpoint is None and _OURS.fullmatch(file.name)
                if is_old or _CUT_SHORT.fullmatch(file.name):
                    file.unlink()
            self._saved_best = checkpoint.position.best_epoch if checkpoint else 0
            self._events = EventLog(self.folder, first_step)

    def save(
        self,
        tensors: dict[str, Tensor],
        position: Position,
        best: dict[str, Tensor] | None = None,
    ) -> None:
        """Keep where the run stands, and the best epoch's weights if they are others than before.

        Killed at any moment, the last checkpoint and the best it speaks of are there.
        """
        if best is not None and position.best_epoch != self._saved_best:
            file = self._best_file(position.best_epoch)
            write_checkpoint(file, Checkpoint(best, position, self.identity))
            self._saved_best = position.best_epoch
        write_checkpoint(self.folder / LAST, Checkpoint(tensors, position, self.identity))
        for old in self.folder.glob("best-epoch-*.safetensors"):
            if old != self._best_file(self._saved_best):
                old.unlink()
        if self._events is not None:
            with self._writing(self.folder):
                self._events.flush()

    def best(self, epoch: int) -> dict[str, Tensor]:
        """Return the weights of the best epoch."""
        return read_checkpoint(self._best_file(epoch)).tensors

    def write_epochs(self, history: list[dict[str, Any]]) -> None:
        """Write a row for each epoch."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(history[0]))
        writer.writeheader()
        writer.writerows(history)
        with self._writing(self.folder / EPOCHS), whole_file(self.folder / EPOCHS) as stream:
            stream.write(text.getvalue().encode())

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Add values to TensorBoard's log."""
        if self._events is not None:
            with self._writing(self.folder):
                self._events.add(values, step)

    def close(self) -> None:
        """Finish the logs."""
        if self._events is not None:
            with self._writing(self.folder):
                self._events.close()

    def _best_file(self, epoch: int) -> Path:
        return self.folder / f"best-epoch-{epoch}.safetensors"

    def _check_same_run(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        if before.get("data") != now.get("data"):
            raise ConfigError(
                f"{self.folder} is a run on other data. Resume it with the same, or start under "
                "another name."
            )
        for name in sorted({*before, *now} - CHANGEABLE):
            if before.get(name) != now.get(name):
                setting = name.removeprefix("config.")
                raise ConfigError(
                    f"{self.folder} is a run with {setting}={before.get(name)}, not "
                    f"{now.get(name)}. Resume it with that, or start under another name."
                )

    def _refuse_other_folder(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise ModelError(f"{self.folder} is a file. Remove it, or name another --out.")
        names = [each.name for each in self.folder.iterdir()] if self.folder.exists() else []
        if not all(_OURS.fullmatch(name) or name.startswith(".") for name in names):
            raise ModelError(f"{self.folder} exists and is no run of setrnn. Name another --out.")

    @contextmanager
    def _writing(self, place: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise DataError(f"{place} cannot be written: {error.strerror}.") from error


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value)
    return flat
