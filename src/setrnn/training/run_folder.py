"""A training run on disk: its checkpoints and its logs.

NAME.run/
    last.safetensors   where it stands: --resume goes on from here
    best.safetensors   the weights of the best epoch
    epochs.csv         a row for each epoch
    events.out.tf...   the same, and the loss as it goes, for TensorBoard
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from setrnn.data.folders import whole_file
from setrnn.errors import ConfigError, ModelError
from setrnn.training.checkpoints import Position, read_checkpoint, write_checkpoint

LAST, BEST, EPOCHS = "last.safetensors", "best.safetensors", "epochs.csv"


def run_folder_of(model: Path) -> Path:
    """Return where the run of a model folder is kept."""
    return model.with_name(model.name + ".run")


class RunFolder:
    """The files of one run."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self.identity = dict(identity)
        self._events: Any = None

    def begin(self, resume: bool) -> tuple[dict[str, Tensor], Position] | None:
        """Return the checkpoint to go on from, or None to start anew."""
        last = self.folder / LAST
        found = None
        if last.is_file():
            tensors, position, identity = read_checkpoint(last)
            if resume:
                self._check_same_run(identity)
                found = tensors, position
            elif not position.is_finished:
                raise ConfigError(
                    f"{self.folder} holds an unfinished run (epoch {position.epoch + 1}). "
                    "Add --resume to go on with it, or remove the folder."
                )
        elif resume:
            raise ConfigError(f"There is no run to resume: {last} does not exist.")
        if found is None and self.folder.exists():
            self._refuse_other_folder()
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        return found

    def save_last(self, tensors: Mapping[str, Tensor], position: Position) -> None:
        """Keep where the run stands."""
        write_checkpoint(self.folder / LAST, tensors, position, self.identity)

    def save_best(self, tensors: Mapping[str, Tensor], position: Position) -> None:
        """Keep the weights of the best epoch so far."""
        write_checkpoint(self.folder / BEST, tensors, position, self.identity)

    def best(self) -> dict[str, Tensor]:
        """Return the weights of the best epoch."""
        return read_checkpoint(self.folder / BEST)[0]

    def write_epochs(self, history: list[dict[str, Any]]) -> None:
        """Write a row for each epoch."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(history[0]) if history else ["epoch"])
        writer.writeheader()
        writer.writerows(history)
        with whole_file(self.folder / EPOCHS) as stream:
            stream.write(text.getvalue().encode())

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Add values to the TensorBoard log, if TensorBoard's writer is installed."""
        if self._events is None:
            try:
                from lightning.fabric.loggers.tensorboard import TensorBoardLogger

                self._events = TensorBoardLogger(self.folder, name="", version="")
            except ModuleNotFoundError:
                self._events = False
        if self._events:
            self._events.log_metrics(dict(values), step)

    def close(self) -> None:
        """Finish the logs."""
        if self._events:
            self._events.finalize("")

    def _check_same_run(self, identity: Mapping[str, Any]) -> None:
        before, now = _flat(identity), _flat(self.identity)
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                raise ConfigError(
                    f"{self.folder} is a run with {name} = {before.get(name)}, "
                    f"not {now.get(name)}. Resume it with that, or start under another name."
                )

    def _refuse_other_folder(self) -> None:
        names = {each.name for each in self.folder.iterdir()}
        foreign = [
            name
            for name in sorted(names - {LAST, BEST, EPOCHS, "hparams.yaml"})
            if not name.startswith("events.out.tfevents") and not name.startswith(".")
        ]
        if foreign:
            raise ModelError(f"{self.folder} exists and is no run of setrnn. Name another --out.")


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = json.dumps(value)
    return flat
