"""The plan of an automatic training: what fits the time, and what of it is kept on disk.

How many epochs and mixed documents fit the time is planned before a member is trained. If all fit,
nothing depends on the clock: then one seed gives one model. The plan and the members are kept, so
that a stopped training loses none of them:

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
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from setrnn.config import Config, TrainingSettings, VectorSettings, check_same, from_dict
from setrnn.data.disk import explain_failed_write, recovered, remove_leftovers, whole_file
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import even_rows
from setrnn.data.vectors import vectors_file
from setrnn.errors import ConfigError, ModelError, SetRNNError
from setrnn.methods import Method
from setrnn.progress import log
from setrnn.systems.registry import find_system
from setrnn.systems.rules import MANY_SETS
from setrnn.systems.system import System
from setrnn.tagging.learn.data import MINUTE
from setrnn.tagging.learn.mixture_weights import MOST_TO_FIT
from setrnn.tagging.tagger import Tagger, load
from setrnn.training.run_folder import PLAN, SAVED, has_run, list_names, run_folder_of
from setrnn.training.start import TrainOptions, make_trainer
from setrnn.training.validation import has_valid

SAFETY = 0.85  # the share of the time left that is planned: other programs may use the cores
FIRST_SHARE = 0.6  # of the time left, for the first of several networks
LEAST_EPOCHS, LEAST_SHARE = 2, 0.2  # of a network; and of its epochs without a limit
MIXING_PASSES = 5  # over the valid part, by each member: candidates, weights, calibration
MIXING_SHARE, LEAST_MIXED = 0.2, 300  # of the budget; documents
WORDS_PER_SECOND = {"ppmi": 150_000, "word2vec": 50_000}  # on one core, about
VECTORS_SHARE = 0.3  # of the time left, at most, for word vectors
CLASSICAL_SHARE = 0.1  # likewise, for the second classical system
START_SECONDS = 8.0  # of a process that trains a network, about
TIMED_DOCUMENTS = 32
FORMAT = 4  # of plan.json


@dataclass(frozen=True)
class MemberPlan:
    """How long a member is trained. 0 epochs are those of a system fitted in one step."""

    epochs: int = 0
    is_short: bool = False  # whether the time decided this number


@dataclass
class Plan:
    """The content of plan.json."""

    format: int = FORMAT
    identity: dict = field(default_factory=dict)  # type: ignore[type-arg]  # of the training
    members: dict = field(default_factory=dict)  # type: ignore[type-arg]  # each a MemberPlan
    learns_vectors: bool | None = None  # None if not decided
    n_mixed: int | None = None  # the documents that these members were mixed on
    seconds: float = 0.0  # that were used


@dataclass(frozen=True)
class Speed:
    """The seconds that a network takes per document."""

    training: float
    predicting: float  # on valid; 0 without a valid part


@dataclass
class Planner:
    """Decides what fits the time that is left; without a limit, all does."""

    limit: float | None  # seconds
    started: float  # by `time.perf_counter`, earlier by what was used before a resume
    n_train: int
    n_valid: int
    start_seconds: float = 0.0  # of a process that trains a network; 0 if it is this one
    predicting: float = 0.0  # seconds per document, of all members so far
    expected: float = 0.0  # the same of the networks in training

    def used(self) -> float:
        """Return the seconds used, including those before a resume."""
        return time.perf_counter() - self.started

    def left(self) -> float:
        """Return the seconds left."""
        return math.inf if self.limit is None else self.limit - self.used()

    def left_to_train(self) -> float:
        """Return the seconds left for training, without those of mixing."""
        if self.limit is None:
            return math.inf
        predicting = self.predicting + self.expected
        return self.left() - MIXING_PASSES * predicting * self._fit_mixed(predicting)

    def has_time_for_vectors(self, prepared: Prepared, vectors: VectorSettings) -> bool:
        """Return whether word vectors can be learned, or were learned before."""
        if vectors_file(prepared, vectors).exists():
            return True
        n_words = len(prepared.split("train").tokens.values)
        n_passes = vectors.epochs if vectors.source == "word2vec" else 1
        seconds = n_passes * n_words / WORDS_PER_SECOND[vectors.source]
        return seconds <= VECTORS_SHARE * self.left()

    def has_time_for_another(self, classical_seconds: Sequence[float]) -> bool:
        """Return whether the next classical system fits: it takes up to three times the first.

        The first one always does, because a mixture needs a member.
        """
        if not classical_seconds:
            return True
        return 3 * max(classical_seconds) <= CLASSICAL_SHARE * self.left_to_train()

    def plan(
        self, networks: Mapping[str, tuple[TrainingSettings, Speed]], n_groups: int
    ) -> dict[str, MemberPlan | str]:
        """Return the plan of each network, or why there is none.

        Args:
            networks: those that are trained at the same time, by name, with their speeds.
            n_groups: how many such groups there are still, this one included.
        """
        plans: dict[str, MemberPlan | str] = {}
        self.expected = sum(speed.predicting for _, speed in networks.values())
        full = [each.epochs * self._time_epoch(each, speed) for each, speed in networks.values()]
        training = n_groups * (max(full) + self.start_seconds)
        predicting = self.predicting + n_groups * self.expected
        is_enough = training + MIXING_PASSES * predicting * self.n_valid <= SAFETY * self.left()
        seconds = self.left_to_train() - self.start_seconds
        others_follow = len(networks) == 1 and n_groups > 1
        for name, (settings, speed) in networks.items():
            epoch_seconds, n_epochs = self._time_epoch(settings, speed), settings.epochs
            if not is_enough:
                n_epochs = fit_epochs(n_epochs, epoch_seconds, seconds, others_follow)
            if not n_epochs:
                n_least = least_epochs(settings.epochs)
                minutes = n_least * epoch_seconds / MINUTE
                plans[name] = (
                    f"{n_least} epochs would take about {minutes:.1f} minutes, longer than is left"
                )
                continue
            plans[name] = MemberPlan(n_epochs, n_epochs != settings.epochs)
            of_full = "" if n_epochs == settings.epochs else f" of {settings.epochs}"
            log.info(
                f"{name}: {1 / speed.training:,.0f} documents/s, {n_epochs}{of_full} epochs, about "
                f"{n_epochs * epoch_seconds / MINUTE:.1f} minutes."
            )
        return plans

    def count_mixed(self) -> int:
        """Return the number of valid documents that the mixture is fitted on, in the time left."""
        if MIXING_PASSES * self.predicting * self.n_valid <= self.left():
            return self.n_valid
        return self._fit_mixed(self.predicting)

    def _time_epoch(self, settings: TrainingSettings, speed: Speed) -> float:
        """Return the seconds of an epoch: training, then measuring on valid."""
        n_measured = min(self.n_valid, settings.valid_documents)
        return speed.training * self.n_train + speed.predicting * n_measured

    def _fit_mixed(self, predicting: float) -> int:
        """Return how many documents can be mixed in the share of the budget that is for it."""
        assert self.limit is not None
        n_fit = int(MIXING_SHARE * self.limit / max(MIXING_PASSES * predicting, 1e-9))
        return min(self.n_valid, MOST_TO_FIT, max(n_fit, LEAST_MIXED))


def fit_epochs(
    n_full: int, epoch_seconds: float, seconds: float, others_follow: bool = False
) -> int:
    """Return how many epochs fit into the seconds, at most `n_full`; 0 if these are too few.

    If others follow, the first network leaves them a part of the time, unless it would then get
    less than half of its epochs.

    Example:
        >>> fit_epochs(20, 10.0, 1000.0), fit_epochs(20, 10.0, 150.0), fit_epochs(20, 10.0, 40.0)
        (20, 12, 0)
        >>> fit_epochs(20, 10.0, 250.0, others_follow=True)
        12
    """
    n_fit = int(SAFETY * seconds / epoch_seconds)
    n_shared = int(FIRST_SHARE * SAFETY * seconds / epoch_seconds)
    if others_follow and n_full / 2 <= n_shared < n_full:
        n_fit = n_shared
    return min(n_fit, n_full) if n_fit >= least_epochs(n_full) else 0


def least_epochs(n_full: int) -> int:
    """Return the least number of epochs with which a network is of use."""
    return min(n_full, max(LEAST_EPOCHS, round(LEAST_SHARE * n_full)))


def measure_speed(
    method: Method, prepared: Prepared, config: Config, options: TrainOptions, seconds: float
) -> Speed:
    """Train a network on its first batches for some seconds, let it predict, and drop it."""
    trainer = make_trainer(method, prepared, config, options)
    training = trainer.time_steps(seconds)
    system = find_system(method)(trainer.network.eval(), config, trainer.device)
    return Speed(training, time_prediction(system, prepared))


def time_prediction(system: System, prepared: Prepared) -> float:
    """Return the seconds that a system takes per valid document, from an even sample of them.

    This is the work of all rules: many sets, and the marginals. A first document is not counted,
    because it takes longer. 0 without a valid part.
    """
    if not has_valid(prepared):
        return 0.0
    tokens = prepared.split("valid").tokens
    sample = tokens.take(even_rows(len(tokens), TIMED_DOCUMENTS))
    for rows in (sample.rows(0, 1), sample):
        start = time.perf_counter()
        system.marginals(rows, system.candidates(rows, MANY_SETS))
    return (time.perf_counter() - start) / len(sample)


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
        check_same(self.folder, self.plan.identity or identity, identity)
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

    def log(self, name: str) -> Path:
        """Return where a network prints that is trained in a process of its own."""
        return self.folder / f"{name}.log"

    def find(self, name: str, device: str) -> Tagger | None:
        """Return a member that is finished; a damaged one is trained again."""
        if name in self.plan.members and recovered(self.place(name)).is_dir():
            with suppress(SetRNNError, OSError):
                found = load(self.place(name), device)
                self.log(name).unlink(missing_ok=True)  # left if a process was killed just before
                return found
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
