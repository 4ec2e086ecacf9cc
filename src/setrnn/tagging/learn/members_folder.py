"""The members of an automatic training on disk, so that a stopped one loses none of them.

MODEL.run/
    plan.json       which members are trained, for how many epochs, with which word vectors, on how
                    many documents they are mixed, and the time so far
    NAME/           the model of a finished member
    NAME.run/       the run of a network: its checkpoints and logs
    NAME.log        what a failed network printed
    saved           empty; there once the mixture is written
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from setrnn.config import from_dict
from setrnn.data.disk import (
    explain_failed_write,
    recovered,
    remove_leftovers,
    whole_file,
)
from setrnn.errors import ConfigError, ModelError, SetRNNError
from setrnn.tagging.learn.members import MemberPlan
from setrnn.tagging.loading import load
from setrnn.tagging.tagger import Tagger
from setrnn.training.run_folder import PLAN, SAVED, has_run, list_names, mark_saved, run_folder_of

FORMAT = 2


def has_members(folder: Path) -> bool:
    """Return whether a folder is that of an automatic training."""
    return (folder / PLAN).is_file()


@dataclass
class MembersFolder:
    """The members and the plan; without a folder, the plan is only kept in memory."""

    folder: Path | None
    names: tuple[str, ...]  # that a member may have
    members: dict[str, MemberPlan] = field(default_factory=dict)
    learns_vectors: bool | None = None  # None if not decided
    n_mixed: int | None = None  # the documents that these members were mixed on
    seconds: float = 0.0  # that were used before
    identity: dict[str, Any] = field(default_factory=dict)  # of the training

    def check(self, resume: bool) -> None:
        """Read the plan to resume; raise if no training can start or continue in the folder."""
        if self.folder is None:
            return
        self._refuse_other_folder()
        if not has_members(self.folder):
            return
        plan = self._read()
        if resume:
            self.identity, self.seconds = plan["identity"], float(plan["seconds"])
            self.members, self.n_mixed = plan["members"], plan["n_mixed"]
            self.learns_vectors = plan["learns_vectors"]
        elif not (self.folder / SAVED).is_file():
            raise ConfigError(
                f"{self.folder} holds the members of a training that was not finished. Add "
                "--resume to continue it, or remove the folder."
            )

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Start, or continue the plan that was read; an older training is removed."""
        if self.identity:
            self.check_same(identity)
        self.identity = dict(identity)
        if self.folder is None:
            return
        with explain_failed_write(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self.folder)
            if not self.members:  # without a plan, there are no members: it is removed first
                for name in (PLAN, SAVED):
                    (self.folder / name).unlink(missing_ok=True)
                for name in self.names:
                    for place in (self.folder / name, run_folder_of(self.folder / name)):
                        shutil.rmtree(place, ignore_errors=True)
            (self.folder / SAVED).unlink(missing_ok=True)

    def plan(self, name: str, plan: MemberPlan, seconds: float) -> None:
        """Add a member to the plan, before it is trained."""
        self.members[name], self.n_mixed = plan, None
        self.write(seconds)

    def write(self, seconds: float) -> None:
        """Write the plan, with the seconds used so far."""
        if self.folder is None:
            return
        plan = {
            "format": FORMAT,
            "identity": self.identity,
            "learns_vectors": self.learns_vectors,
            "members": {name: asdict(each) for name, each in self.members.items()},
            "n_mixed": self.n_mixed,
            "seconds": round(seconds, 2),
        }
        with whole_file(self.folder / PLAN) as stream:
            stream.write(json.dumps(plan, indent=1).encode())

    def is_short(self, n_valid: int) -> bool:
        """Return whether the time decided a part of the plan."""
        is_sample = self.n_mixed is not None and self.n_mixed < n_valid
        plans = self.members.values()
        return is_sample or self.learns_vectors is False or any(each.is_short for each in plans)

    def place(self, name: str) -> Path | None:
        """Return the model folder of a member."""
        return None if self.folder is None else self.folder / name

    def find(self, name: str, device: str) -> Tagger | None:
        """Return a member that is finished."""
        place = self.place(name)
        if place is None or name not in self.members or not recovered(place).is_dir():
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
            plan["members"] = {
                name: from_dict(MemberPlan, each) for name, each in plan["members"].items()
            }
            numbers = [n for each in plan["members"].values() for n in astuple(each)]
            is_sound = (
                plan["format"] == FORMAT
                and isinstance(plan["identity"], dict)
                and isinstance(plan["seconds"], int | float)
                and plan["learns_vectors"] in (None, True, False)
                and (plan["n_mixed"] is None or isinstance(plan["n_mixed"], int))
                and all(name in self.names for name in plan["members"])
                and min(numbers, default=0) >= 0
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            is_sound = False
        if not is_sound:
            raise ModelError(
                f"{self.folder / PLAN} is damaged, or from another version of setrnn. Remove "
                f"{self.folder} and train again."
            )
        return plan

    def check_same(self, now: Mapping[str, Any]) -> None:
        """Raise if the plan that was read is that of another training."""
        for name in sorted({*self.identity, *now}):
            if self.identity.get(name) != now.get(name):
                named = {"rule": "another measure", "settings": "other settings or another seed"}
                raise ConfigError(
                    f"{self.folder} is a training with {named.get(name, f'other {name}')}. Resume "
                    "it with the same, or use another --out."
                )

    def _refuse_other_folder(self) -> None:
        assert self.folder is not None
        names = list_names(self.folder)
        if has_run(self.folder):
            raise ConfigError(
                f"{self.folder} is the run of one network. Remove it, use another --out, or "
                "continue it with its --method."
            )
        more = (f"{name}{end}" for name in self.names for end in (".run", ".log"))
        known = {PLAN, SAVED, *self.names, *more}
        if not all(name in known or name.startswith(".") for name in names):
            raise ModelError(f"{self.folder} exists and is not a run of setrnn. Use another --out.")
