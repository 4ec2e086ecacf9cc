"""The members of a mixture in training on disk, so that a stopped training loses none of them.

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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from setrnn.config import from_dict
from setrnn.data.disk import explain_failed_write, recovered, remove_leftovers, whole_file
from setrnn.errors import ConfigError, ModelError, SetRNNError
from setrnn.progress import OnProgress, Progress
from setrnn.tagging.loading import load
from setrnn.tagging.tagger import Tagger
from setrnn.training.run_folder import PLAN, SAVED, has_run, list_names, run_folder_of

FORMAT = 2
OTHERS = {"rule": "another measure", "settings": "other settings or another seed"}


@dataclass(frozen=True)
class MemberPlan:
    """How long a member is trained. 0 epochs are those of a system fitted in one step."""

    epochs: int = 0
    valid_documents: int = 0  # measured after each epoch, at most
    is_short: bool = False  # whether the time decided these numbers


@dataclass
class Plan:
    """The content of plan.json."""

    format: int = FORMAT
    identity: dict = field(default_factory=dict)  # type: ignore[type-arg]  # of the training
    members: dict = field(default_factory=dict)  # type: ignore[type-arg]  # each a MemberPlan
    learns_vectors: bool | None = None  # None if not decided
    n_mixed: int | None = None  # the documents that these members were mixed on
    seconds: float = 0.0  # that were used


@dataclass
class MembersFolder:
    """The members and the plan."""

    folder: Path
    names: tuple[str, ...]  # that a member may have
    plan: Plan = field(default_factory=Plan)

    def check(self, resume: bool) -> None:
        """Read the plan to resume; raise if no training can start or continue in the folder."""
        if has_run(self.folder):
            raise ConfigError(
                f"{self.folder} is the run of one network. Remove it, use another --out, or "
                "continue it with its --method."
            )
        ends = ("", ".run", ".log")
        known = {PLAN, SAVED, *(name + end for name in self.names for end in ends)}
        if any(name not in known and name[0] != "." for name in list_names(self.folder)):
            raise ModelError(f"{self.folder} exists and is not a run of setrnn. Use another --out.")
        if not (self.folder / PLAN).is_file():
            return
        plan = self._read()
        if resume:
            self.plan = plan
        elif not (self.folder / SAVED).is_file():
            raise ConfigError(
                f"{self.folder} holds the members of a training that was not finished. Add "
                "--resume to continue it, or remove the folder."
            )

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Start, or continue the plan that was read; an older training is removed."""
        before = self.plan.identity or identity
        for name in sorted({*before, *identity}):
            if before.get(name) != identity.get(name):
                raise ConfigError(
                    f"{self.folder} is a training with {OTHERS.get(name, f'other {name}')}. Resume "
                    "it with the same, or use another --out."
                )
        self.plan.identity = dict(identity)
        with explain_failed_write(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self.folder)
            (self.folder / SAVED).unlink(missing_ok=True)
            if not self.plan.members:  # without a plan, there are no members: it is removed first
                (self.folder / PLAN).unlink(missing_ok=True)
                for name in self.names:
                    shutil.rmtree(self.place(name), ignore_errors=True)
                    shutil.rmtree(run_folder_of(self.place(name)), ignore_errors=True)

    def place(self, name: str) -> Path:
        """Return the model folder of a member."""
        return self.folder / name

    def find(self, name: str, device: str) -> Tagger | None:
        """Return a member that is finished; a damaged one is trained again."""
        if name in self.plan.members and recovered(self.place(name)).is_dir():
            with suppress(SetRNNError, OSError):
                return load(self.place(name), device)
        return None

    def write(self) -> None:
        """Write the plan."""
        with whole_file(self.folder / PLAN) as stream:
            stream.write(json.dumps(asdict(self.plan), indent=1).encode())

    def _read(self) -> Plan:
        try:
            plan = from_dict(Plan, json.loads((self.folder / PLAN).read_text(encoding="utf-8")))
            members = {name: from_dict(MemberPlan, each) for name, each in plan.members.items()}
            is_sound = plan.format == FORMAT and set(members) <= set(self.names)
        except (ConfigError, ValueError, TypeError, AttributeError, RecursionError):
            is_sound = False
        if not is_sound:
            raise ModelError(
                f"{self.folder / PLAN} is damaged, or from another version of setrnn. Remove "
                f"{self.folder} and train again."
            )
        return replace(plan, members=members)


def name_member(name: str, on_progress: OnProgress) -> OnProgress:
    """Return a callback that names the member in what it reports."""

    def report(event: Progress) -> None:
        on_progress(replace(event, activity=f"{event.activity} {name}"))

    return report
