"""The members of an automatic training on disk, so that a stopped one loses none of them.

MODEL.run/
    plan.json       which members are trained, for how many epochs, and the time so far
    NAME/           the model of a finished member
    NAME.run/       the run of a network: its checkpoints and logs
    NAME.log        what a failed network printed
    saved           empty; there once the mixture is written
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setrnn.data.folders import (
    explain_failed_write,
    recovered,
    remove_leftovers,
    whole_file,
)
from setrnn.errors import ConfigError, ModelError, SetRNNError
from setrnn.tagging.tagger import Tagger, load
from setrnn.training.run_folder import PLAN, SAVED, has_run, mark_saved, run_folder_of

FORMAT = 1


def has_members(folder: Path) -> bool:
    """Return whether a folder is that of an automatic training."""
    return (folder / PLAN).is_file()


@dataclass
class MembersFolder:
    """The members and the plan; without a folder, the plan is only kept in memory."""

    folder: Path | None
    names: tuple[str, ...]  # that a member may have
    # Of the members planned: the epochs, 0 if it is not a network, and the documents to measure.
    epochs: dict[str, list[int]] = field(default_factory=dict)
    seconds: float = 0.0  # that were used before

    def begin(self, identity: Mapping[str, Any], resume: bool) -> None:
        """Read the plan to resume, or remove an older training whose model was written."""
        self.identity = dict(identity)
        if self.folder is None:
            return
        self._refuse_other_folder()
        if has_members(self.folder):
            plan = self._read()
            if resume:
                self._check_same(plan["identity"])
                self.epochs, self.seconds = dict(plan["epochs"]), float(plan["seconds"])
            elif not (self.folder / SAVED).is_file():
                raise ConfigError(
                    f"{self.folder} holds the members of a training that was not finished. Add "
                    "--resume to continue it, or remove the folder."
                )
        with explain_failed_write(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self.folder)
            if not self.epochs:  # without a plan, there are no members: it is removed first
                for name in (PLAN, SAVED):
                    (self.folder / name).unlink(missing_ok=True)
                for name in self.names:
                    for place in (self.folder / name, run_folder_of(self.folder / name)):
                        shutil.rmtree(place, ignore_errors=True)
            (self.folder / SAVED).unlink(missing_ok=True)

    def plan(self, name: str, epochs: list[int], seconds: float) -> None:
        """Add a member to the plan, before it is trained."""
        self.epochs[name] = epochs
        self.write(seconds)

    def write(self, seconds: float) -> None:
        """Write the plan, with the seconds used so far."""
        if self.folder is None:
            return
        plan = {
            "format": FORMAT,
            "identity": self.identity,
            "epochs": self.epochs,
            "seconds": round(seconds, 2),
        }
        with whole_file(self.folder / PLAN) as stream:
            stream.write(json.dumps(plan, indent=1).encode())

    def place(self, name: str) -> Path | None:
        """Return the model folder of a member."""
        return None if self.folder is None else self.folder / name

    def find(self, name: str, device: str) -> Tagger | None:
        """Return a member that is finished."""
        place = self.place(name)
        if place is None or name not in self.epochs or not recovered(place).is_dir():
            return None
        with suppress(SetRNNError, OSError):  # a damaged one is trained again
            return load(place, device)
        return None

    def mark_saved(self, seconds: float) -> None:
        """Note that the mixture is written: the members may be replaced from now on."""
        if self.folder is not None:
            self.write(seconds)
            mark_saved(self.folder)

    def _read(self) -> dict[str, Any]:
        assert self.folder is not None
        try:
            plan: dict[str, Any] = json.loads((self.folder / PLAN).read_text(encoding="utf-8"))
            is_sound = (
                plan["format"] == FORMAT
                and isinstance(plan["identity"], dict)
                and isinstance(plan["seconds"], int | float)
                and all(
                    name in self.names
                    and [type(n) for n in numbers] == [int, int]
                    and min(numbers) >= 0
                    for name, numbers in plan["epochs"].items()
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            is_sound = False
        if not is_sound:
            raise ModelError(
                f"{self.folder / PLAN} is damaged, or from another version of setrnn. Remove "
                f"{self.folder} and train again."
            )
        return plan

    def _check_same(self, before: Mapping[str, Any]) -> None:
        now = json.loads(json.dumps(self.identity))
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                what = "another measure" if name == "rule" else f"other {name}"
                raise ConfigError(
                    f"{self.folder} is a training with {what}. Resume it with the same, or use "
                    "another --out."
                )

    def _refuse_other_folder(self) -> None:
        assert self.folder is not None
        if self.folder.exists() and not self.folder.is_dir():
            raise ModelError(f"{self.folder} is a file. Remove it, or use another --out.")
        if has_run(self.folder):
            raise ConfigError(
                f"{self.folder} is the run of one network. Remove it, use another --out, or "
                "continue it with its --method."
            )
        more = (f"{name}{end}" for name in self.names for end in (".run", ".log"))
        known = {PLAN, SAVED, *self.names, *more}
        names = _list_names(self.folder)
        if not all(name in known or name.startswith(".") for name in names):
            raise ModelError(f"{self.folder} exists and is not a run of setrnn. Use another --out.")


def _list_names(folder: Path) -> Iterable[str]:
    return [each.name for each in folder.iterdir()] if folder.exists() else []
