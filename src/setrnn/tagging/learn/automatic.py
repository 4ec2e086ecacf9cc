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
from typing import Any

from setrnn.config import Config, settings_hash, to_dict
from setrnn.data.cache import Source, open_prepared
from setrnn.data.disk import private_folder
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import even_rows
from setrnn.data.vectors import SOURCES
from setrnn.errors import BusyError, SetRNNError, StoppedError, find_memory_problem
from setrnn.methods import find_method
from setrnn.model.devices import find_device, limited_threads, threads_of_jobs
from setrnn.progress import OnProgress, log, name_reports
from setrnn.systems.rules import rule_for
from setrnn.tagging.documents import open_documents, take_documents
from setrnn.tagging.learn.data import (
    MINUTE,
    Asked,
    fit_to_data,
    make_vectors,
    note_cut_documents,
    open_training_data,
)
from setrnn.tagging.learn.few import open_few, train_on_few
from setrnn.tagging.learn.member_candidates import (
    CLASSICAL,
    MOST_JOBS,
    Candidate,
    list_candidates,
    suggest_transformer,
)
from setrnn.tagging.learn.mix import mix_members
from setrnn.tagging.learn.mixture_weights import LEAST_TO_FIT, can_fit
from setrnn.tagging.learn.planning import (
    START_SECONDS,
    MemberPlan,
    MembersFolder,
    Planner,
    measure_speed,
    time_prediction,
)
from setrnn.tagging.learn.train import train_uncalibrated, warn_if_nothing_learned
from setrnn.tagging.tagger import Tagger, load
from setrnn.tagging.trust.calibrate import find_calibration
from setrnn.training.pool import Job, run_jobs
from setrnn.training.run_folder import (
    has_run,
    mark_saved,
    only_trainer,
    read_history,
    run_folder_of,
)
from setrnn.training.start import TrainOptions, check_method
from setrnn.training.validation import has_valid

ENOUGH_DOCUMENTS = 2_000  # to train on: with fewer, more of them are the first advice
PROBE_SECONDS, PROBE_SHARE = 5.0, 0.02  # to measure a speed, at most; and of the budget


@dataclass
class Automatic:
    """One training without a method."""

    source: Source
    asked: Asked
    out: Path | None
    device: str
    resume: bool
    limit: float | None  # seconds
    started: float  # by `time.perf_counter`
    n_jobs: int  # networks trained at a time, each in a process of its own if there are several
    on_progress: OnProgress
    members: dict[str, Tagger] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # the reason by the name
    subwords: Prepared | None = None  # the data as tokens of a transformer, once one needs them

    def __post_init__(self) -> None:
        """Choose what may become a member; refuse settings that cannot be trained."""
        self.is_on_gpu = find_device(self.device).type == "cuda"
        self.n_threads = threads_of_jobs(MOST_JOBS)
        self.measure = self.asked.config.training.metric
        self.rule = rule_for(self.measure)
        has_texts = self.source.prepared_folder is None
        self.candidates = list_candidates(self.asked, has_texts, self.is_on_gpu)
        for each in self.candidates:
            check_method(find_method(each.method), each.config)

    def train(self) -> Tagger:
        """Train the members, mix them, and save the mixture."""
        with ExitStack() as stack:
            if self.out is None:
                place = stack.enter_context(private_folder()) / "members"
            else:
                place = run_folder_of(self.out)
            stack.enter_context(only_trainer(place))
            if not self.is_on_gpu:  # threads that wait for a busy core slow down all others
                stack.enter_context(limited_threads(self.n_threads))
            self.folder = MembersFolder(place, tuple(each.name for each in self.candidates))
            self.folder.check(self.resume)
            few = open_few(self.source, self.asked, self.on_progress)
            if few is not None:
                return train_on_few(few, self.asked, self.out, self.on_progress)
            self._open_data()
            groups = self._group()
            for number, group in enumerate(groups):
                self._train_group(group, len(groups) - number)
            tagger = self._mix()
            if self.out is not None:
                way_out = f" The members are kept in {place}: add --resume to write the model."
                tagger = tagger.saved_to(self.out, way_out)
                self._write_plan()
                mark_saved(place)
        return tagger

    def _open_data(self) -> None:
        """Prepare the data of members over words, and begin or continue the plan for it."""
        words, overrides = self.candidates[0].config, self.asked.overrides
        self.prepared, _ = open_training_data(
            self.source, words, overrides, on_progress=self.on_progress
        )
        identity = {
            "config": to_dict(self.asked.config),
            "data": settings_hash(self.prepared.description),
        }
        self.folder.begin(identity)
        self.plan = self.folder.plan
        n_documents, self.can_weigh = self.prepared.description["n_documents"], False
        if has_valid(self.prepared):
            valid = self.prepared.split("valid")
            self.can_weigh = can_fit(valid.labels.lengths[valid.is_complete])
        self.planner = Planner(
            self.limit,
            self.started - self.plan.seconds,
            n_documents["train"],
            n_documents.get("valid", 0),
            START_SECONDS if self.n_jobs > 1 else 0.0,
        )

    def _group(self) -> list[Sequence[Candidate]]:
        """Return the candidates, with those together that are trained at the same time."""
        groups: list[Sequence[Candidate]]
        groups = [[each] for each in self.candidates if not each.is_network]
        if not self.can_weigh:
            log.warning(
                f"The valid part has fewer than {LEAST_TO_FIT} documents with all their labels: no "
                "networks are trained, because nothing would show whether they help."
            )
            return groups
        networks = [each for each in self.candidates if each.is_network]
        starts = range(0, len(networks), self.n_jobs)
        return groups + [networks[start : start + self.n_jobs] for start in starts]

    def _train_group(self, group: Sequence[Candidate], n_groups: int) -> None:
        """Train the candidates that fit the time, or load them; failed ones are left out."""
        self.planner.expected = 0.0
        waiting: list[Candidate] = []
        for candidate in group:
            with self._leaving_out(candidate):
                found = self.folder.find(candidate.name, self.device)
                if found is not None:
                    log.info(f"{candidate.name}: trained before.")
                    self._keep(candidate, found)
                elif self._is_too_late(candidate):
                    self._leave_out(candidate.name, "no time was left")
                else:
                    waiting.append(self._fit_settings(candidate))
        plans = self.plan.members
        self._plan([each for each in waiting if each.name not in plans], n_groups)
        ready = [each.by(plans[each.name]) for each in waiting if each.name in plans]
        if self.n_jobs > 1 and group[0].is_network:
            self._train_side_by_side(ready)
        else:
            self._train_in_turn(ready)
        self._write_plan()

    def _write_plan(self) -> None:
        self.plan.seconds = self.planner.used()
        self.folder.write()

    def _is_too_late(self, candidate: Candidate) -> bool:
        """Return whether no time is left for a network; one with a finished epoch needs none."""
        has_epoch = bool(read_history(run_folder_of(self.folder.place(candidate.name))))
        return candidate.is_network and not has_epoch and self.planner.left_to_train() <= 0

    def _data_of(self, candidate: Candidate) -> Prepared:
        """Return the data of a candidate: words, or the tokens of a transformer."""
        if not candidate.is_pretrained:
            return self.prepared
        if self.subwords is None:
            text = candidate.config.text
            self.subwords = open_prepared(self.source, text, on_progress=self.on_progress)
            note_cut_documents(self.subwords)
        return self.subwords

    def _fit_settings(self, candidate: Candidate) -> Candidate:
        """Choose settings that fit the data; make the word vectors that they ask for."""
        prepared, config = self._data_of(candidate), candidate.config
        largest = int(prepared.split("train").labels.lengths.max(initial=0))
        model = replace(config.model, max_labels=max(config.model.max_labels, largest))
        config = replace(config, text=prepared.text_settings, model=model)
        if candidate.is_network and not candidate.is_pretrained:
            config = self._choose_vectors(config)
            make_vectors(prepared, config, self.on_progress)
        return replace(candidate, config=fit_to_data(config, prepared))

    def _choose_vectors(self, config: Config) -> Config:
        """Decide once, for all networks, whether there is time to learn word vectors."""
        if config.vectors.source not in SOURCES:
            return config
        if self.plan.learns_vectors is None:
            has_time = self.planner.has_time_for_vectors(self.prepared, config.vectors)
            self.plan.learns_vectors = has_time
            if not has_time:
                log.info("There is no time to learn word vectors: networks start without them.")
        if self.plan.learns_vectors:
            return config
        return replace(config, vectors=replace(config.vectors, source="none"))

    def _plan(self, candidates: Sequence[Candidate], n_groups: int) -> None:
        """Decide which candidates are trained, and for how many epochs; keep that in the plan."""
        plans: dict[str, MemberPlan | str] = {}
        speeds = {}
        for each in candidates:
            settings = each.config.training
            if not each.is_network:
                seconds = [tagger.notes["training_seconds"] for tagger in self.members.values()]
                has_time = self.planner.has_time_for_another(seconds)
                plans[each.name] = MemberPlan() if has_time else "its training would take too long"
            elif self.limit is None:
                plans[each.name] = MemberPlan(settings.epochs, settings.valid_documents)
            else:
                with self._leaving_out(each):
                    options = TrainOptions(self.device, rule=self.rule)
                    most = min(PROBE_SECONDS, PROBE_SHARE * self.limit)
                    method, prepared = find_method(each.method), self._data_of(each)
                    speed = measure_speed(method, prepared, each.config, options, most)
                    speeds[each.name] = settings, speed
        if speeds:
            plans |= self.planner.plan(speeds, n_groups)
        for name, plan in plans.items():
            if isinstance(plan, MemberPlan):
                self.plan.members[name], self.plan.n_mixed = plan, None
            else:
                self._leave_out(name, plan)
        self._write_plan()

    def _train_in_turn(self, candidates: Sequence[Candidate]) -> None:
        """Train members one after the other, in this process."""
        for each in candidates:
            if each.is_network:
                log.info(f"Training {each.name}.")
            with self._leaving_out(each):
                with name_reports(each.name, self.on_progress) as on_progress:
                    self._work(each)(on_progress)
                self._keep(each, load(self.folder.place(each.name), self.device))

    def _train_side_by_side(self, candidates: Sequence[Candidate]) -> None:
        """Train networks at the same time, each in a process of its own."""
        by_name = {each.name: each for each in candidates}
        if by_name:
            at_once = " at the same time" if len(by_name) > 1 else ""
            log.info(f"Training {' and '.join(by_name)}{at_once}.")
        jobs = [
            Job(name, self._work(each), self.folder.log(name), part_of="networks")
            for name, each in by_name.items()
        ]
        with closing(run_jobs(jobs, len(jobs), self.on_progress, self.n_threads)) as all_ended:
            for ended in all_ended:
                name = ended.job.name
                if ended.failure is not None:
                    self._leave_out(name, ended.failure.message, is_warning=True)
                    continue
                with self._leaving_out(by_name[name]):
                    self._keep(by_name[name], load(self.folder.place(name), self.device))

    def _work(self, candidate: Candidate) -> partial[None]:
        """Return the training of a member in the time that is left, for any process."""
        data, place = self._data_of(candidate).folder, self.folder.place(candidate.name)
        end = None if self.limit is None else time.time() + self.planner.left_to_train()
        return partial(train_member, candidate, data, place, self.device, self.rule, end)

    def _keep(self, candidate: Candidate, tagger: Tagger) -> None:
        """Add a member, and measure how fast it predicts."""
        if self.limit is not None:
            self.planner.predicting += time_prediction(tagger.system, self._data_of(candidate))
        self.members[candidate.name] = tagger

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
            self._leave_out(candidate.name, reason, is_warning=True)

    def _leave_out(self, name: str, reason: str, is_warning: bool = False) -> None:
        self.left_out[name] = reason.rstrip(".")
        if is_warning:  # the summary has the others
            log.warning(f"{name} is left out: {self.left_out[name]}.")

    def _mix(self) -> Tagger:
        """Mix the members on the valid part; with equal weights if that is too small."""
        trained = [each for each in self.candidates if each.name in self.members]
        names = [each.name for each in trained]
        taggers = [self.members[name] for name in names]
        if self.plan.n_mixed is None:
            self.plan.n_mixed = self.planner.count_mixed()
            self._write_plan()
        data = self.source if any(each.is_pretrained for each in trained) else self.prepared
        rows = even_rows(self.planner.n_valid, self.plan.n_mixed)
        documents = take_documents(open_documents(data, "valid"), rows)
        before = find_calibration(self.out)
        mixture = mix_members(names, taggers, documents, before, self.on_progress)
        warn_if_nothing_learned(mixture, self.prepared, self.measure)
        notes = {**mixture.notes, "automatic": self._describe(trained)}
        return replace(mixture, notes=notes, rule=self.rule)

    def _describe(self, trained: Sequence[Candidate]) -> dict[str, Any]:
        """Return what was tried, as plain JSON values, for people."""
        members = [_describe_member(each, self.members[each.name]) for each in trained]
        plans, n_mixed = self.plan.members.values(), self.plan.n_mixed
        is_short = (
            bool(self.left_out)
            or self.plan.learns_vectors is False
            or (n_mixed is not None and n_mixed < self.planner.n_valid)
            or any(each.is_short for each in plans)
            or any(each.get("epochs_done") != each.get("epochs") for each in members)
        )
        return {
            "measure": self.measure,
            "rule": self.rule,
            "minutes": None if self.limit is None else self.limit / MINUTE,
            "seed": self.asked.config.seed,
            "members": members,
            "left_out": self.left_out,
            "better": self._list_hints(is_short),
        }

    def _list_hints(self, is_short: bool) -> list[str]:
        """Say what would make a better model, such as time if that shortened something."""
        hints, n_train = [], self.planner.n_train
        if n_train < ENOUGH_DOCUMENTS:
            hints.append(f"More documents with labels: there are {n_train:,} to train on.")
        if not self.can_weigh:
            need = f"{LEAST_TO_FIT} documents with all their labels in the valid part"
            return [*hints, f"{need}: networks can then be trained and weighed."]
        if self.limit is not None and is_short:
            minutes = math.ceil(3 * self.limit / MINUTE)
            hints.append(f"More time: --budget {minutes}, or --budget 0 for no limit.")
        if not self.is_on_gpu:
            hints.append("A GPU: networks then train many times faster.")
        if not any(each.is_pretrained for each in self.candidates):
            hints.append(suggest_transformer())
        return hints


def train_member(
    candidate: Candidate,
    data: Path,
    place: Path,
    device: str,
    rule: str,
    end: float | None,
    on_progress: OnProgress,
) -> None:
    """Train a member on prepared data, and save it; a network that was stopped continues.

    The start of a process takes some of the time until the end, a `time.time`, and so does waiting
    for one that was left behind.
    """
    run = run_folder_of(place) if candidate.is_network else None
    with only_trainer(run, wait=True):
        options = TrainOptions(
            device,
            run,
            resume=run is not None and has_run(run),
            max_seconds=None if end is None else end - time.time(),
            on_progress=on_progress,
            rule=rule,
        )
        method = find_method(candidate.method)
        train_uncalibrated(Prepared(data), method, candidate.config, options, place)


def _describe_member(candidate: Candidate, tagger: Tagger) -> dict[str, Any]:
    """Return how a member was trained, as plain JSON values."""
    notes, config = tagger.notes, tagger.config
    described: dict[str, Any] = {"name": candidate.name, "method": candidate.method}
    if candidate.is_network:
        described |= {
            "seed": config.seed,
            "epochs": config.training.epochs,
            "valid_documents": config.training.valid_documents,
            "epochs_done": len(notes["epochs"]),
            "best_epoch": notes["best_epoch"],
        }
    return {**described, "training_seconds": notes.get("training_seconds")}
