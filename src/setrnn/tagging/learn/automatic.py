"""Train without a method: members that fit a time budget, cheap ones first, then their mixture.

Which networks are trained, and for how many epochs, follows from their measured speed and the time
left. If all fit in full, one seed gives one model. If not, the plan that was made is in the notes:
the same members with these numbers of epochs give the same model.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setrnn.config import settings_hash, to_dict
from setrnn.data.batches import even_rows
from setrnn.data.cache import Source
from setrnn.methods import find_method
from setrnn.model.devices import find_device, limited_threads, threads_of_jobs
from setrnn.models.card import note_training
from setrnn.progress import OnProgress
from setrnn.systems.rules import rule_for
from setrnn.tagging.documents import LabelledDocuments, open_documents, take_documents
from setrnn.tagging.learn.data import MINUTE, Asked, open_training_data
from setrnn.tagging.learn.member_candidates import (
    MOST_JOBS,
    choose_settings,
    list_candidates,
    suggest_transformer,
)
from setrnn.tagging.learn.member_training import MemberData, MemberTraining
from setrnn.tagging.learn.members_folder import MembersFolder
from setrnn.tagging.learn.mix import join, mix_members
from setrnn.tagging.learn.mixture_outputs import LEAST_TO_FIT
from setrnn.tagging.learn.planning import START_SECONDS, Clock, Planner
from setrnn.tagging.learn.train import check_learned, save_again, warn_if_not_learned
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust.calibrate import keep_targets, note_targets
from setrnn.training.run_folder import only_trainer, run_folder_of
from setrnn.training.start import TrainOptions, check_method

FEW_DOCUMENTS = 2_000


@dataclass
class Automatic:
    """One training without a method."""

    source: Source
    asked: Asked
    out: Path | None
    device: str
    resume: bool
    clock: Clock
    n_jobs: int  # networks trained at a time, each in a process of its own if there are several
    on_progress: OnProgress

    def __post_init__(self) -> None:
        """Choose what may become a member; refuse settings that cannot be trained."""
        self.is_on_gpu = find_device(self.device).type == "cuda"
        self.n_threads = threads_of_jobs(MOST_JOBS)
        self.measure = self.asked.config.training.metric
        self.rule = rule_for(self.measure)
        has_texts = self.source.prepared_folder is None
        self.words, pretrained = choose_settings(self.asked, has_texts, self.is_on_gpu)
        self.has_pretrained = pretrained is not None
        self.candidates = list_candidates(self.words, pretrained, self.is_on_gpu)
        for each in self.candidates:
            check_method(find_method(each.method), each.config)

    def train(self) -> Tagger:
        """Train the members, mix them, and save the mixture."""
        with ExitStack() as stack:
            place = self._place(stack)
            stack.enter_context(only_trainer(place))
            if not self.is_on_gpu:  # threads that wait for a busy core slow down all others
                stack.enter_context(limited_threads(self.n_threads))
            self.folder = MembersFolder(place, tuple(each.name for each in self.candidates))
            self.folder.check(self.resume)
            self._open_data()
            self.folder.begin(self._identify())
            self.clock.used_before = self.folder.seconds
            start_seconds = START_SECONDS if self.n_jobs > 1 else 0.0
            self.planner = Planner(self.clock, self.data.n_valid, start_seconds)
            self.training = MemberTraining(
                self.candidates,
                self.data,
                self.folder,
                self.planner,
                TrainOptions(self.device, rule=self.rule, wait=True),
                measure=self.measure,
                n_jobs=self.n_jobs,
                n_threads=self.n_threads,
                on_progress=self.on_progress,
            )
            self.training.run()
            tagger = self._mix()
            if self.out is not None:
                way_out = f" The members are kept in {place}: add --resume to write the model."
                tagger = save_again(tagger, self.out, way_out, self.resume)
                self.folder.mark_saved(self.clock.used())
        return tagger

    def _place(self, stack: ExitStack) -> Path | None:
        """Return the folder of the members: other processes need one, if only for a while."""
        if self.out is not None:
            return run_folder_of(self.out)
        if self.n_jobs == 1:
            return None
        return Path(stack.enter_context(TemporaryDirectory(prefix="setrnn-"))) / "members"

    def _open_data(self) -> None:
        """Prepare the data of members over words."""
        prepared, _ = open_training_data(
            self.source, self.words, self.asked.overrides, on_progress=self.on_progress
        )
        self.data = MemberData(self.source, prepared, self.on_progress)

    def _identify(self) -> dict[str, Any]:
        data = settings_hash(self.data.prepared.description)
        settings = settings_hash(to_dict(self.asked.config))
        return {"settings": settings, "rule": self.rule, "data": data}

    def _mix(self) -> Tagger:
        """Mix the members on the valid part; with equal weights if that is too small."""
        members, prepared = self.training.members, self.data.prepared
        names = [each.candidate.name for each in members]
        taggers = [each.tagger for each in members]
        if self.data.n_valid < LEAST_TO_FIT:
            own = {"data": prepared.name, "n_documents": self.data.n_train}
            notes = own | note_training()
            mixture = replace(join(taggers), notes=notes)
            mixture = keep_targets(mixture, self.out)
            note_targets(mixture)
            check_learned(mixture, prepared, self.measure)
        else:
            mixture = mix_members(names, taggers, self._documents(), self.out, self.on_progress)
            score = mixture.notes["mixture"]["rules"][self.rule]["held_out"]
            warn_if_not_learned(score, prepared, self.measure)
        notes = {**mixture.notes, "automatic": self._describe()}
        return replace(mixture, notes=notes, rule=self.rule)

    def _documents(self) -> LabelledDocuments:
        """Return the valid documents that fit the time, evenly spaced; the plan keeps how many."""
        if self.folder.n_mixed is None:
            self.folder.n_mixed = self.planner.count_mixed()
            self.folder.write(self.clock.used())
        needs_texts = any(each.candidate.is_pretrained for each in self.training.members)
        documents = open_documents(self.source if needs_texts else self.data.prepared, "valid")
        return take_documents(documents, even_rows(self.data.n_valid, self.folder.n_mixed))

    def _describe(self) -> dict[str, Any]:
        """Return what was tried, as plain JSON values, for people."""
        members = [each.describe() for each in self.training.members]
        is_short = any(each.get("epochs_done") != each.get("epochs") for each in members)
        is_short |= bool(self.training.left_out) or self.folder.is_short(self.data.n_valid)
        return {
            "measure": self.measure,
            "rule": self.rule,
            "minutes": None if self.clock.limit is None else self.clock.limit / MINUTE,
            "seed": self.asked.config.seed,
            "members": members,
            "left_out": self.training.left_out,
            "better": self._list_hints(is_short),
        }

    def _list_hints(self, is_short: bool) -> list[str]:
        """Say what would make a better model, such as time if that shortened something."""
        hints = []
        if self.data.n_train < FEW_DOCUMENTS:
            hints.append(
                f"More documents with labels: there are {self.data.n_train:,} to train on."
            )
        if self.data.n_valid < LEAST_TO_FIT:
            return hints
        if self.clock.limit is not None and is_short:
            minutes = math.ceil(3 * self.clock.limit / MINUTE)
            hints.append(f"More time: --budget {minutes}, or --budget 0 for no limit.")
        if not self.is_on_gpu:
            hints.append("A GPU: networks then train many times faster.")
        if not self.has_pretrained:
            hints.append(suggest_transformer())
        return hints
