"""Train without a method: members that fit a time budget, cheap ones first, then their mixture.

Which networks are trained, and for how many epochs, follows from their measured speed and the time
left. If all fit in full, one seed gives one model. If not, the plan that was made is in the notes:
the same members with these numbers of epochs give the same model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from setrnn.config import Config, settings_hash, to_dict
from setrnn.data.cache import open_prepared
from setrnn.data.disk import private_folder, remove_folder
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import even_rows
from setrnn.data.source import Source
from setrnn.data.vectors import SOURCES
from setrnn.errors import BusyError, SetRNNError, StoppedError, find_memory_problem
from setrnn.model.devices import find_device, limited_threads, threads_of_jobs
from setrnn.progress import OnProgress, log, name_reports
from setrnn.systems.rules import rule_for
from setrnn.tagging.documents import open_documents, take_documents
from setrnn.tagging.learn.data import (
    MINUTE,
    Asked,
    check_training_data,
    fit_to_data,
    make_vectors,
    note_cut_documents,
)
from setrnn.tagging.learn.few import is_few, list_few, train_on_few
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
from setrnn.tagging.learn.train import (
    TIME_IS_UP,
    train_uncalibrated,
    warn_if_nothing_learned,
    why_ended,
)
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
        self.is_on_gpu = find_device(self.device).type != "cpu"
        self.n_threads = threads_of_jobs(MOST_JOBS)
        self.measure = self.asked.config.training.metric
        self.rule = rule_for(self.measure)
        has_texts = self.source.prepared_folder is None
        self.candidates = list_candidates(self.asked, has_texts, self.is_on_gpu)
        for each in self.candidates:
            check_method(each.method, each.config)

    def train(self, keep_run: bool = True) -> Tagger:
        """Train the members, mix them, and save the mixture; then they are removed, if asked."""
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
            self.prepared, is_few = self._open_data()
            if is_few:
                tagger = self._train_on_few()
                return tagger if self.out is None else tagger.saved_to(self.out)
            self._begin_plan()
            groups = self._group()
            for number, group in enumerate(groups):
                self._train_group(group, len(groups) - number)
            tagger = self._mix()
            if self.out is not None:
                way_out = f" The members are kept in {place}: add --resume to write the model."
                tagger = tagger.saved_to(self.out, way_out)
                self._write_plan()
                mark_saved(place)
                if not keep_run:
                    remove_folder(place)
        return tagger

    def _open_data(self) -> tuple[Prepared, bool]:
        """Prepare the data of members over words; without a valid part if documents are few."""
        words, source = self.candidates[0].config, self.source
        prepared = open_prepared(source, words.text, on_progress=self.on_progress)
        if found := is_few(source, self.asked.config, prepared):
            source = replace(source, cut_valid=False)
            prepared = open_prepared(source, words.text, on_progress=self.on_progress)
        check_training_data(prepared, source, words, self.asked.overrides)
        return prepared, found

    def _train_on_few(self) -> Tagger:
        self.limit = None  # nothing is planned: each of these members takes seconds
        candidates = list_few(replace(self.asked.config, text=self.prepared.text_settings))
        mixture, self.left_out = train_on_few(
            candidates, self.prepared, find_calibration(self.out), self.on_progress
        )
        trained = [each for each in candidates if each.name not in self.left_out]
        members = [{"name": each.name, "method": each.method.name} for each in trained]
        n_documents = len(self.prepared.split("train"))
        better = [_suggest_documents(n_documents), suggest_transformer()]
        return self._describe(mixture, members, better, "train")

    def _begin_plan(self) -> None:
        """Begin or continue the plan for the data."""
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

    def _group(self) -> list[list[Candidate]]:
        """Return the candidates, with those together that are trained at the same time."""
        networks = [each for each in self.candidates if each.method.is_network]
        groups = [[each] for each in self.candidates if not each.method.is_network]
        if self.can_weigh:
            starts = range(0, len(networks), self.n_jobs)
            return groups + [networks[start : start + self.n_jobs] for start in starts]
        log.warning(
            f"The valid part has fewer than {LEAST_TO_FIT} documents with all their labels: no "
            "networks are trained, because nothing would show whether they help."
        )
        return groups

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
        self._train([each.by(plans[each.name]) for each in waiting if each.name in plans])
        self._write_plan()

    def _write_plan(self) -> None:
        self.plan.seconds = self.planner.used()
        self.folder.write()

    def _is_too_late(self, candidate: Candidate) -> bool:
        """Return whether no time is left for a network; one with a finished epoch needs none."""
        has_epoch = bool(read_history(run_folder_of(self.folder.place(candidate.name))))
        return candidate.method.is_network and not has_epoch and self.planner.left_to_train() <= 0

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
        if candidate.method.is_network and not candidate.is_pretrained:
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
            if not each.method.is_network:
                seconds = [tagger.notes["training_seconds"] for tagger in self.members.values()]
                has_time = self.planner.has_time_for_another(seconds)
                plans[each.name] = MemberPlan() if has_time else "its training would take too long"
            elif self.limit is None:
                plans[each.name] = MemberPlan(settings.epochs)
            else:
                with self._leaving_out(each):
                    options = TrainOptions(self.device, rule=self.rule)
                    most = min(PROBE_SECONDS, PROBE_SHARE * self.limit)
                    prepared = self._data_of(each)
                    speed = measure_speed(each.method, prepared, each.config, options, most)
                    speeds[each.name] = settings, speed
        if speeds:
            plans |= self.planner.plan(speeds, n_groups)
        for name, plan in plans.items():
            if isinstance(plan, MemberPlan):
                self.plan.members[name], self.plan.n_mixed = plan, None
            else:
                self._leave_out(name, plan)
        self._write_plan()

    def _train(self, ready: Sequence[Candidate]) -> None:
        """Train members in this process, or networks side by side in processes of their own."""
        by_name = {each.name: each for each in ready}
        is_network = any(each.method.is_network for each in ready)
        if is_network:
            at_once = " at the same time" if len(ready) > 1 else ""
            log.info(f"Training {' and '.join(by_name)}{at_once}.")
        if self.n_jobs == 1 or not is_network:
            for each in ready:
                with self._leaving_out(each):
                    with name_reports(each.name, self.on_progress) as on_progress:
                        self._work(each)(on_progress)
                    self._keep(each, load(self.folder.place(each.name), self.device))
            return
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
        data, place = self._data_of(candidate), self.folder.place(candidate.name)
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
        if self.plan.n_mixed is None:
            self.plan.n_mixed = self.planner.count_mixed()
            self._write_plan()
        data = self.source if any(each.is_pretrained for each in trained) else self.prepared
        rows = even_rows(self.planner.n_valid, self.plan.n_mixed)
        documents = take_documents(open_documents(data, "valid"), rows)
        before = find_calibration(self.out)
        by_name = {each.name: self.members[each.name] for each in trained}
        mixture = mix_members(by_name, documents, before, self.on_progress)
        members = [_describe_member(each, self.members[each.name]) for each in trained]
        is_short = (
            bool(self.left_out)
            or self.plan.learns_vectors is False
            or self.plan.n_mixed < self.planner.n_valid
            or any(each.is_short for each in self.plan.members.values())
            or any(each.get("ended") == TIME_IS_UP for each in members)
        )
        return self._describe(mixture, members, self._list_hints(is_short))

    def _describe(
        self,
        mixture: Tagger,
        members: Sequence[Mapping[str, Any]],
        better: Sequence[str],
        split: str = "valid",
    ) -> Tagger:
        """Return the mixture with its rule, and with notes on what was tried, for people.

        The scores of the mixture are from a part of the data.
        """
        warn_if_nothing_learned(mixture, self.prepared, self.measure, split)
        automatic = {
            "measure": self.measure,
            "rule": self.rule,
            "minutes": None if self.limit is None else self.limit / MINUTE,
            "seed": self.asked.config.seed,
            "members": members,
            "left_out": self.left_out,
            "better": better,
        }
        return replace(mixture, notes={**mixture.notes, "automatic": automatic}, rule=self.rule)

    def _list_hints(self, is_short: bool) -> list[str]:
        """Say what would make a better model, such as time if that shortened something."""
        hints, n_train = [], self.planner.n_train
        if n_train < ENOUGH_DOCUMENTS:
            hints.append(_suggest_documents(n_train))
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


def _suggest_documents(n_documents: int) -> str:
    return f"More documents with labels: there are {n_documents:,} to train on."


def train_member(
    candidate: Candidate,
    prepared: Prepared,
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
    run = run_folder_of(place) if candidate.method.is_network else None
    with only_trainer(run, wait=True):
        options = TrainOptions(
            device,
            run,
            resume=run is not None and has_run(run),
            max_seconds=None if end is None else end - time.time(),
            on_progress=on_progress,
            rule=rule,
        )
        train_uncalibrated(prepared, candidate.method, candidate.config, options, place)


def _describe_member(candidate: Candidate, tagger: Tagger) -> dict[str, Any]:
    """Return how a member was trained, as plain JSON values."""
    notes, config = tagger.notes, tagger.config
    described: dict[str, Any] = {"name": candidate.name, "method": candidate.method.name}
    if candidate.method.is_network:
        described |= {
            "seed": config.seed,
            "epochs": config.training.epochs,
            "epochs_done": len(notes["epochs"]),
            "ended": why_ended(notes, config),
            "best_epoch": notes["best_epoch"],
        }
    return {**described, "training_seconds": notes.get("training_seconds")}
