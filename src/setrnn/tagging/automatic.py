"""Train without a method: members that fit a time budget, cheap ones first, then their mixture.

Which networks are trained, and for how many epochs, follows from their measured speed and the time
left. If all fit in full, one seed gives one model. If not, the plan that was made is in the notes:
the same members with these numbers of epochs give the same model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setrnn.config import Config
from setrnn.data.batches import even_rows
from setrnn.data.cache import Source, open_prepared
from setrnn.data.kept_vectors import LEARNED
from setrnn.data.prepared import Prepared
from setrnn.errors import (
    BusyError,
    SetRNNError,
    StoppedError,
    TrainingError,
    find_memory_problem,
)
from setrnn.methods import find_method
from setrnn.metrics import MEASURES
from setrnn.model.devices import find_device, limited_threads, threads_of_jobs
from setrnn.plain_settings import settings_hash, to_dict
from setrnn.progress import Note, OnProgress
from setrnn.systems.rules import rule_for
from setrnn.tagging.candidates import (
    CLASSICAL,
    MOST_JOBS,
    Candidate,
    choose_settings,
    list_candidates,
    suggest_transformer,
)
from setrnn.tagging.documents import LabelledDocuments, open_documents, take_documents
from setrnn.tagging.fitting import save_again
from setrnn.tagging.learning import check_learned, warn_if_not_learned
from setrnn.tagging.loading import load
from setrnn.tagging.members import (
    Member,
    MemberPlan,
    Planned,
    name_member,
    train_member,
    work_on_member,
)
from setrnn.tagging.members_folder import MembersFolder
from setrnn.tagging.mixing import join, mix_members
from setrnn.tagging.mixture_outputs import LEAST_TO_FIT
from setrnn.tagging.occasion import describe_occasion
from setrnn.tagging.opening import (
    MINUTE,
    Asked,
    make_vectors,
    note_cut_documents,
    open_training_data,
)
from setrnn.tagging.planning import (
    START_SECONDS,
    Clock,
    Planner,
    least_epochs,
    without_learned_vectors,
)
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.targets import keep_targets, note_targets
from setrnn.training.pool import Ended, Job, run_jobs
from setrnn.training.resuming import list_objectives
from setrnn.training.run_folder import only_trainer, run_folder_of
from setrnn.training.schedule import fit_to_data
from setrnn.training.speed import Speed, measure_speed, time_prediction
from setrnn.training.start import TrainOptions, check_method

PROBE_SECONDS, PROBE_SHARE = 5.0, 0.02  # to measure a speed, at most; and of the budget
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
    finish_now: bool = False  # take what a training that was stopped has; train no more
    members: list[Member] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # the reason by the name

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
        names = tuple(each.name for each in self.candidates)
        with ExitStack() as stack:
            place = self._place(stack)
            stack.enter_context(only_trainer(place))
            if not self.is_on_gpu:  # threads that wait for a busy core slow down all others
                stack.enter_context(limited_threads(self.n_threads))
            self.folder = MembersFolder(place, names)
            self.folder.check(self.resume)
            if self.finish_now:
                self._check_finishable()
            self._open_data()
            if self.finish_now:
                self.folder.check_same(self._identify())
            else:
                self.folder.begin(self._identify())
            self.clock.used_before = self.folder.seconds
            start_seconds = START_SECONDS if self.n_jobs > 1 else 0.0
            self.planner = Planner(self.clock, self.n_valid, start_seconds)
            if self.finish_now:
                self._add_finished()
            else:
                self._add_all()
            self.members.sort(key=lambda each: names.index(each.candidate.name))
            tagger = self._mix()
            if self.out is not None:
                way_out = f" The members are kept in {place}: add --resume to write the model."
                tagger = save_again(tagger, self.out, way_out, self.resume)
                if not self.finish_now:  # else the training can be resumed, and is not replaced
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
        self.prepared, self.words = open_training_data(
            self.source, self.words, self.asked.overrides, on_progress=self.on_progress
        )
        self.subwords: Prepared | None = None
        n_documents: dict[str, int] = self.prepared.description["n_documents"]
        self.n_train, self.n_valid = n_documents["train"], n_documents.get("valid", 0)

    def _data(self, candidate: Candidate) -> Prepared:
        """Return the data of a candidate: words, or the tokens of a transformer."""
        if not candidate.is_pretrained:
            return self.prepared
        if self.subwords is None:
            text = candidate.config.text
            self.subwords = open_prepared(self.source, text, on_progress=self.on_progress)
            note_cut_documents(self.subwords, self.on_progress)
        return self.subwords

    def _identify(self) -> dict[str, Any]:
        data = settings_hash(self.prepared.description)
        settings = settings_hash(to_dict(self.asked.config))
        return {"settings": settings, "rule": self.rule, "data": data}

    def _group(self) -> list[Sequence[Candidate]]:
        """Return the candidates, with those together that are trained at the same time."""
        networks = [each for each in self.candidates if each.is_network]
        groups: list[Sequence[Candidate]]
        groups = [[each] for each in self.candidates if not each.is_network]
        if self.n_valid < LEAST_TO_FIT:
            text = (
                f"The valid part has {self.n_valid} documents, and weights can only be chosen on "
                f"{LEAST_TO_FIT} or more: no networks are trained, because nothing would show "
                f"whether they help. {' and '.join(CLASSICAL)} count the same."
            )
            self.on_progress(Note(text, is_warning=True))
            return groups
        starts = range(0, len(networks), self.n_jobs)
        return groups + [networks[start : start + self.n_jobs] for start in starts]

    def _add_all(self) -> None:
        groups = self._group()
        for number, some in enumerate(groups):
            self._add(some, len(groups) - number)

    def _check_finishable(self) -> None:
        """Raise if no member is finished; this is before the data is read."""
        if not any(self.folder.find(each.name, "cpu") for each in self.candidates):
            raise TrainingError(
                f"{self.folder.folder} has no finished member: there is nothing to keep. Continue "
                "it with --resume."
            )

    def _add_finished(self) -> None:
        """Take the members that are finished, and the best epochs of networks that have begun."""
        for candidate in self.candidates:
            plan, place = self.folder.members.get(candidate.name), self.folder.place(candidate.name)
            with self._leaving_out(candidate):
                found = self.folder.find(candidate.name, self.device)
                if found is None and plan and place and list_objectives(run_folder_of(place)):
                    found = self._train(self._prepare(candidate).by(plan))
                if found is None:
                    self._leave_out(candidate, "not trained yet")
                else:
                    self._keep(candidate, found)

    def _add(self, candidates: Sequence[Candidate], n_groups: int) -> None:
        """Train the candidates that fit the time, or load them; failed ones are left out."""
        self.planner.expected = 0.0
        planned: list[Planned] = []
        for candidate in candidates:
            with self._leaving_out(candidate):
                found = self.folder.find(candidate.name, self.device)
                if found is None:
                    planned.append(self._prepare(candidate))
                else:
                    self.on_progress(Note(f"{candidate.name}: trained before."))
                    self._keep(candidate, found)
        plans = self.folder.members
        self._plan([each for each in planned if each.candidate.name not in plans], n_groups)
        ready = [
            each.by(plans[each.candidate.name]) for each in planned if each.candidate.name in plans
        ]
        if self.n_jobs > 1 and candidates[0].is_network:
            self._train_side_by_side(ready)
        else:
            for each in ready:
                with self._leaving_out(each.candidate):
                    self._keep(each.candidate, self._train(each))
        self.folder.write(self.clock.used())

    def _prepare(self, candidate: Candidate) -> Planned:
        """Open the data of a candidate, with word vectors; choose settings that fit them."""
        prepared = self._data(candidate)
        config = replace(candidate.config, text=prepared.text_settings)
        largest = int(prepared.split("train").labels.lengths.max(initial=0))
        if largest > config.model.max_labels:
            config = replace(config, model=replace(config.model, max_labels=largest))
        if candidate.is_network and not candidate.is_pretrained:
            config = self._choose_vectors(config)
            make_vectors(prepared, config, self.on_progress)
        return Planned(candidate, prepared.folder, fit_to_data(config, prepared))

    def _choose_vectors(self, config: Config) -> Config:
        """Decide once, for all networks, whether there is time to learn word vectors."""
        if config.vectors.source != LEARNED:
            return config
        if self.folder.learns_vectors is None:
            has_time = self.planner.has_time_for_vectors(self.prepared, config.vectors)
            self.folder.learns_vectors = has_time
            if not has_time:
                text = "There is no time to learn word vectors: networks start without them."
                self.on_progress(Note(text))
        return config if self.folder.learns_vectors else without_learned_vectors(config)

    def _plan(self, planned: Sequence[Planned], n_groups: int) -> None:
        """Decide which candidates are trained, and for how many epochs; keep that in the plan."""
        is_timed = self.clock.limit is not None
        speeds: list[tuple[Planned, Speed]] = []
        for each in planned:
            candidate, training = each.candidate, each.config.training
            if not candidate.is_network:
                if self.planner.has_time_for_another(self._list_seconds()):
                    self._note_plan(candidate, MemberPlan())
                else:
                    self._leave_out(candidate, "its training would take too long")
            elif not is_timed:
                self._note_plan(candidate, MemberPlan(training.epochs, training.valid_documents))
            elif self.planner.seconds_left() <= 0:
                self._leave_out(candidate, "no time was left")
            else:
                with self._leaving_out(candidate):
                    speeds.append((each, self._measure(each)))
        if speeds:
            self._plan_networks(speeds, n_groups)

    def _plan_networks(self, speeds: Sequence[tuple[Planned, Speed]], n_groups: int) -> None:
        plans = self.planner.plan(speeds, n_groups)
        for (each, speed), (estimate, plan) in zip(speeds, plans, strict=True):
            if plan is None:
                n_least = least_epochs(estimate.epochs)
                minutes = n_least * estimate.epoch_seconds / MINUTE
                reason = f"{n_least} epochs would take about {minutes:.1f} minutes"
                self._leave_out(each.candidate, reason)
                continue
            self._note_plan(each.candidate, plan)
            of_full = "" if plan.epochs == estimate.epochs else f" of {estimate.epochs}"
            text = (
                f"{each.candidate.name}: {1 / speed.training:,.0f} documents/s, "
                f"{plan.epochs}{of_full} epochs, about "
                f"{plan.epochs * estimate.epoch_seconds / MINUTE:.1f} minutes."
            )
            self.on_progress(Note(text))

    def _note_plan(self, candidate: Candidate, plan: MemberPlan) -> None:
        self.folder.plan(candidate.name, plan, self.clock.used())

    def _list_seconds(self) -> list[float]:
        return [each.tagger.notes.get("training_seconds", 0.0) for each in self.members]

    def _measure(self, planned: Planned) -> Speed:
        assert self.clock.limit is not None
        options = TrainOptions(self.device, rule=self.rule)
        seconds = min(PROBE_SECONDS, PROBE_SHARE * self.clock.limit)
        method = find_method(planned.candidate.method)
        return measure_speed(method, planned.prepared, planned.config, options, seconds)

    def _train(self, planned: Planned) -> Tagger:
        """Train a member in this process."""
        name = planned.candidate.name
        report, place = name_member(name, self.on_progress), self.folder.place(name)
        if planned.candidate.is_network and not self.finish_now:
            self.on_progress(Note(f"Training {name}."))
        return train_member(planned, place, self._options(), time.time(), report)

    def _train_side_by_side(self, planned: Sequence[Planned]) -> None:
        """Train networks at the same time, each in a process of its own."""
        by_name = {each.candidate.name: each for each in planned}
        if planned:
            at_once = " at the same time" if len(planned) > 1 else ""
            self.on_progress(Note(f"Training {' and '.join(by_name)}{at_once}."))
        jobs, options = [], self._options()
        for name, each in by_name.items():
            place = self.folder.place(name)
            assert place is not None, "several jobs have a folder"
            work = partial(work_on_member, each, place, options, time.time())
            jobs.append(Job(name, work, place.with_name(f"{name}.log"), part_of="networks"))
        with closing(run_jobs(jobs, len(jobs), self.on_progress, self.n_threads)) as all_ended:
            for ended in all_ended:
                self._keep_ended(by_name[ended.job.name].candidate, ended)

    def _keep_ended(self, candidate: Candidate, ended: Ended) -> None:
        if ended.failure is not None:
            self._leave_out(candidate, ended.failure.message, is_warning=True)
            return
        with self._leaving_out(candidate):
            place = self.folder.place(candidate.name)
            assert place is not None
            tagger = load(place, self.device)
            self._keep(candidate, tagger)
            self.planner.start_seconds = ended.seconds - tagger.notes["training_seconds"]
            best = tagger.notes["best_epoch"]
            if best:
                value = tagger.notes["epochs"][best - 1][self.measure]
                name, minutes = MEASURES[self.measure], ended.seconds / MINUTE
                text = f"{candidate.name}: {name} {value:.3f} on valid, {minutes:.1f} minutes."
                self.on_progress(Note(text))

    def _options(self) -> TrainOptions:
        seconds = None if self.clock.limit is None else self.planner.seconds_left()
        return TrainOptions(
            self.device,
            finish_now=self.finish_now,
            rule=self.rule,
            wait=True,
            max_seconds=seconds,
        )

    def _keep(self, candidate: Candidate, tagger: Tagger) -> None:
        """Add a member, and measure how fast it predicts."""
        if self.clock.limit is not None:
            self.planner.predicting += time_prediction(tagger.system, self._data(candidate))
        self.members.append(Member(candidate, tagger))

    @contextmanager
    def _leaving_out(self, candidate: Candidate) -> Iterator[None]:
        """Leave out a candidate that fails; the first one must not."""
        try:
            yield
        except (StoppedError, BusyError):
            raise
        except (SetRNNError, MemoryError, RuntimeError) as error:  # torch has no MemoryError
            is_ours = isinstance(error, SetRNNError)
            reason = str(error) if is_ours else find_memory_problem(error)
            # Without complete documents, the first has no label sets to choose from.
            has_sets = self.prepared.split("train").is_complete.any()
            if reason is None or (candidate.name == CLASSICAL[0] and has_sets):
                raise
            self._leave_out(candidate, reason, is_warning=True)

    def _leave_out(self, candidate: Candidate, reason: str, is_warning: bool = False) -> None:
        self.left_out[candidate.name] = reason.rstrip(".")
        if is_warning:  # the summary has the others
            text = f"{candidate.name} is left out: {reason.rstrip('.')}."
            self.on_progress(Note(text, is_warning=True))

    def _mix(self) -> Tagger:
        """Mix the members on the valid part; with equal weights if that is too small."""
        names = [each.candidate.name for each in self.members]
        taggers = [each.tagger for each in self.members]
        if self.n_valid < LEAST_TO_FIT:
            notes = {"data": self.prepared.name, "n_documents": self.n_train, **describe_occasion()}
            mixture = replace(join(taggers), notes=notes)
            mixture = keep_targets(mixture, self.out, self.on_progress)
            note_targets(mixture, self.on_progress)
            check_learned(mixture, self.prepared, self.measure, self.on_progress)
        else:
            mixture = mix_members(names, taggers, self._documents(), self.out, self.on_progress)
            score = mixture.notes["mixture"]["rules"][self.rule]["held_out"]
            warn_if_not_learned(score, self.prepared, self.measure, self.on_progress)
        notes = {**mixture.notes, "automatic": self._describe()}
        return replace(mixture, notes=notes, rule=self.rule)

    def _documents(self) -> LabelledDocuments:
        """Return the valid documents that fit the time, evenly spaced; the plan keeps how many."""
        if self.folder.n_mixed is None:
            self.folder.n_mixed = self.planner.count_mixed()
            if not self.finish_now:
                self.folder.write(self.clock.used())
        needs_texts = any(each.candidate.is_pretrained for each in self.members)
        documents = open_documents(self.source if needs_texts else self.prepared, "valid")
        return take_documents(documents, even_rows(self.n_valid, self.folder.n_mixed))

    def _describe(self) -> dict[str, Any]:
        """Return what was tried, as plain JSON values, for people."""
        members = [each.describe() for each in self.members]
        is_short = any(each.get("epochs_done") != each.get("epochs") for each in members)
        is_short |= bool(self.left_out) or self.folder.is_short(self.n_valid)
        return {
            "measure": self.measure,
            "rule": self.rule,
            "minutes": None if self.clock.limit is None else self.clock.limit / MINUTE,
            "seed": self.asked.config.seed,
            "members": members,
            "left_out": self.left_out,
            "better": self._list_hints(is_short),
        }

    def _list_hints(self, is_short: bool) -> list[str]:
        """Say what would make a better model, such as time if that shortened something."""
        hints = []
        if self.n_train < FEW_DOCUMENTS:
            hints.append(f"More documents with labels: there are {self.n_train:,} to train on.")
        if self.n_valid < LEAST_TO_FIT:
            return hints
        if self.finish_now and is_short:
            hints.append("The rest of the training: --resume without --finish-now.")
        elif self.clock.limit is not None and is_short:
            minutes = math.ceil(3 * self.clock.limit / MINUTE)
            hints.append(f"More time: --budget {minutes}, or --budget 0 for no limit.")
        if not self.is_on_gpu:
            hints.append("A GPU: networks then train many times faster.")
        if not self.has_pretrained:
            hints.append(suggest_transformer())
        return hints
