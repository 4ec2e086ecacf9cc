"""Train the members of a mixture that fit the time; what fails is left out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from setrnn.config import Config
from setrnn.data.cache import Source, open_prepared
from setrnn.data.prepared import Prepared
from setrnn.data.vectors import SOURCES
from setrnn.errors import BusyError, SetRNNError, StoppedError, find_memory_problem
from setrnn.methods import find_method
from setrnn.metrics import MEASURES
from setrnn.progress import OnProgress, log, name_notes
from setrnn.tagging.learn.data import MINUTE, make_vectors, note_cut_documents
from setrnn.tagging.learn.member_candidates import CLASSICAL, Candidate
from setrnn.tagging.learn.members import (
    Member,
    MemberPlan,
    Planned,
    name_member,
    train_member,
    work_on_member,
)
from setrnn.tagging.learn.members_folder import MembersFolder
from setrnn.tagging.learn.mixture_outputs import LEAST_TO_FIT
from setrnn.tagging.learn.planning import Planner, least_epochs, without_learned_vectors
from setrnn.tagging.loading import load
from setrnn.tagging.tagger import Tagger
from setrnn.training.pool import Ended, Job, run_jobs
from setrnn.training.run_folder import read_history, run_folder_of
from setrnn.training.schedule import fit_to_data
from setrnn.training.speed import Speed, measure_speed, time_prediction
from setrnn.training.start import TrainOptions

PROBE_SECONDS, PROBE_SHARE = 5.0, 0.02  # to measure a speed, at most; and of the budget


@dataclass
class MemberData:
    """The data of the members: words, and the tokens of a transformer once one needs them."""

    source: Source
    prepared: Prepared  # words
    on_progress: OnProgress
    subwords: Prepared | None = None

    @property
    def n_train(self) -> int:
        """The number of documents to train on."""
        return self._count("train")

    @property
    def n_valid(self) -> int:
        """The number of documents to measure on."""
        return self._count("valid")

    def _count(self, split: str) -> int:
        n_documents: dict[str, int] = self.prepared.description["n_documents"]
        return n_documents.get(split, 0)

    def of(self, candidate: Candidate) -> Prepared:
        """Return the data of a candidate: words, or the tokens of a transformer."""
        if not candidate.is_pretrained:
            return self.prepared
        if self.subwords is None:
            text = candidate.config.text
            self.subwords = open_prepared(self.source, text, on_progress=self.on_progress)
            note_cut_documents(self.subwords)
        return self.subwords


@dataclass
class MemberTraining:
    """The training of the candidates of one mixture."""

    candidates: Sequence[Candidate]
    data: MemberData
    folder: MembersFolder
    planner: Planner
    options: TrainOptions  # without a limit of time: the planner knows how much is left
    measure: str
    n_jobs: int  # networks trained at a time, each in a process of its own if there are several
    n_threads: int  # of each process
    on_progress: OnProgress
    members: list[Member] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # the reason by the name

    def run(self) -> None:
        """Train the candidates that fit the time."""
        groups = self._group()
        for number, some in enumerate(groups):
            self._add(some, len(groups) - number)
        self.members.sort(key=lambda each: self.candidates.index(each.candidate))

    def _group(self) -> list[Sequence[Candidate]]:
        """Return the candidates, with those together that are trained at the same time."""
        networks = [each for each in self.candidates if each.is_network]
        groups: list[Sequence[Candidate]]
        groups = [[each] for each in self.candidates if not each.is_network]
        if self.data.n_valid < LEAST_TO_FIT:
            text = (
                f"The valid part has {self.data.n_valid} documents, and weights can only be chosen "
                f"on {LEAST_TO_FIT} or more: no networks are trained, because nothing would show "
                f"whether they help. {' and '.join(CLASSICAL)} count the same."
            )
            log.warning(text)
            return groups
        starts = range(0, len(networks), self.n_jobs)
        return groups + [networks[start : start + self.n_jobs] for start in starts]

    def _add(self, candidates: Sequence[Candidate], n_groups: int) -> None:
        """Train the candidates that fit the time, or load them; failed ones are left out."""
        self.planner.expected = 0.0
        planned: list[Planned] = []
        for candidate in candidates:
            with self._leaving_out(candidate):
                found = self.folder.find(candidate.name, self.options.device)
                if found is not None:
                    log.info(f"{candidate.name}: trained before.")
                    self._keep(candidate, found)
                elif self._is_too_late(candidate):
                    self._leave_out(candidate, "no time was left")
                else:
                    planned.append(self._prepare(candidate))
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
        self.folder.write(self.planner.clock.used())

    def _is_too_late(self, candidate: Candidate) -> bool:
        """Return whether no time is left for a network; one with a finished epoch needs none."""
        place = self.folder.place(candidate.name)
        has_epoch = place is not None and bool(read_history(run_folder_of(place)))
        return candidate.is_network and not has_epoch and self.planner.seconds_left() <= 0

    def _prepare(self, candidate: Candidate) -> Planned:
        """Open the data of a candidate, with word vectors; choose settings that fit them."""
        prepared = self.data.of(candidate)
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
        if config.vectors.source not in SOURCES:
            return config
        if self.folder.learns_vectors is None:
            has_time = self.planner.has_time_for_vectors(self.data.prepared, config.vectors)
            self.folder.learns_vectors = has_time
            if not has_time:
                text = "There is no time to learn word vectors: networks start without them."
                log.info(text)
        return config if self.folder.learns_vectors else without_learned_vectors(config)

    def _plan(self, planned: Sequence[Planned], n_groups: int) -> None:
        """Decide which candidates are trained, and for how many epochs; keep that in the plan."""
        is_timed = self.planner.clock.limit is not None
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
            log.info(text)

    def _note_plan(self, candidate: Candidate, plan: MemberPlan) -> None:
        self.folder.plan(candidate.name, plan, self.planner.clock.used())

    def _list_seconds(self) -> list[float]:
        return [each.tagger.notes.get("training_seconds", 0.0) for each in self.members]

    def _measure(self, planned: Planned) -> Speed:
        assert self.planner.clock.limit is not None
        options = TrainOptions(self.options.device, rule=self.options.rule)
        seconds = min(PROBE_SECONDS, PROBE_SHARE * self.planner.clock.limit)
        method = find_method(planned.candidate.method)
        return measure_speed(method, planned.prepared, planned.config, options, seconds)

    def _train(self, planned: Planned) -> Tagger:
        """Train a member in this process."""
        name = planned.candidate.name
        report, place = name_member(name, self.on_progress), self.folder.place(name)
        if planned.candidate.is_network:
            log.info(f"Training {name}.")
        with name_notes(name):
            return train_member(planned, place, self._limit(), time.time(), report)

    def _train_side_by_side(self, planned: Sequence[Planned]) -> None:
        """Train networks at the same time, each in a process of its own."""
        by_name = {each.candidate.name: each for each in planned}
        if planned:
            at_once = " at the same time" if len(planned) > 1 else ""
            log.info(f"Training {' and '.join(by_name)}{at_once}.")
        jobs, options = [], self._limit()
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
            tagger = load(place, self.options.device)
            self._keep(candidate, tagger)
            self.planner.start_seconds = ended.seconds - tagger.notes["training_seconds"]
            best = tagger.notes["best_epoch"]
            if best:
                value = tagger.notes["epochs"][best - 1][self.measure]
                name, minutes = MEASURES[self.measure], ended.seconds / MINUTE
                text = f"{candidate.name}: {name} {value:.3f} on valid, {minutes:.1f} minutes."
                log.info(text)

    def _limit(self) -> TrainOptions:
        """Return how to train a member in the time that is left."""
        if self.planner.clock.limit is None:
            return self.options
        return replace(self.options, max_seconds=self.planner.seconds_left())

    def _keep(self, candidate: Candidate, tagger: Tagger) -> None:
        """Add a member, and measure how fast it predicts."""
        if self.planner.clock.limit is not None:
            self.planner.predicting += time_prediction(tagger.system, self.data.of(candidate))
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
            has_sets = self.data.prepared.split("train").is_complete.any()
            if reason is None or (candidate.name == CLASSICAL[0] and has_sets):
                raise
            self._leave_out(candidate, reason, is_warning=True)

    def _leave_out(self, candidate: Candidate, reason: str, is_warning: bool = False) -> None:
        self.left_out[candidate.name] = reason.rstrip(".")
        if is_warning:  # the summary has the others
            text = f"{candidate.name} is left out: {reason.rstrip('.')}."
            log.warning(text)
