"""Train without a method: members that fit a time budget, cheap ones first, then their mixture.

Which networks are trained, and for how many epochs, follows from their measured speed and the time
left. Without a limit all are trained in full: then one seed gives one model. With a limit, the plan
that was made is in the notes: the same members with these numbers of epochs give the same model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setrnn.config import Config, settings_hash, to_dict
from setrnn.data.cache import Source
from setrnn.data.model_folder import check_model_place
from setrnn.data.prepared import is_prepared
from setrnn.errors import BusyError, DataError, SetRNNError, StoppedError
from setrnn.methods import find_method
from setrnn.metrics import MEASURES
from setrnn.model.devices import find_device, n_cores
from setrnn.progress import Note, OnProgress
from setrnn.tagging.documents import LabelledDocuments, open_documents
from setrnn.tagging.fitting import save_again
from setrnn.tagging.learning import check_learned, warn_if_not_learned
from setrnn.tagging.members import (
    Member,
    Planned,
    PortablePlan,
    describe_member,
    name_member,
    take_evenly,
    time_prediction,
    train_member,
    work_on_member,
)
from setrnn.tagging.members_folder import MembersFolder
from setrnn.tagging.mixing import join, mix_members
from setrnn.tagging.mixture_outputs import LEAST_TO_FIT, MOST_TO_FIT
from setrnn.tagging.opening import describe_cut, make_vectors, open_training_data
from setrnn.tagging.planning import (
    CLASSICAL,
    MINUTE,
    Candidate,
    Clock,
    find_pretrained,
    fit_epochs,
    least_epochs,
    list_candidates,
    without_encoder,
)
from setrnn.tagging.tagger import Tagger, load
from setrnn.training.pool import Ended, Job, run_jobs
from setrnn.training.run_folder import only_trainer, run_folder_of
from setrnn.training.schedule import fit_to_data
from setrnn.training.speed import Speed, measure_speed
from setrnn.training.start import TrainOptions, check_method

MINUTES_ON_CPU = 10.0  # if no budget is given
PROBE_SECONDS, PROBE_SHARE = 5.0, 0.02  # to measure a speed, at most; and of the budget
MIXING_PASSES = 4  # over the valid part, by each member: candidates, weights, calibration
MIXING_SHARE, LEAST_MIXED = 0.2, 300  # of the budget; documents
WORDS_PER_SECOND = 100_000  # of word2vec on one core, about
VECTORS_SHARE = 0.3  # of the time left, at most, for word vectors
CLASSICAL_SHARE = 0.1  # likewise, for the second classical system
FEW_DOCUMENTS = 2_000


@dataclass
class Automatic:
    """One training without a method."""

    source: Source
    config: Config
    overrides: Sequence[str]
    rule: str
    out: Path | None
    device: str
    resume: bool
    budget: float | None  # minutes; 0 for no limit, None for the default of the device
    started: float
    jobs: int  # networks trained at a time on a CPU, each in a process of its own
    on_progress: OnProgress
    members: list[Member] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # the reason by the name
    is_short: bool = False  # whether a network got fewer epochs than it should

    def train(self) -> Tagger:
        """Train the members, mix them, and save the mixture."""
        self.is_on_gpu = find_device(self.device).type == "cuda"
        self.n_jobs = 1 if self.is_on_gpu else self.jobs
        self.n_threads = max(1, n_cores() // self.n_jobs)  # of each job
        default = 0.0 if self.is_on_gpu else MINUTES_ON_CPU
        minutes = default if self.budget is None else self.budget
        self.clock = Clock(minutes * MINUTE or None, self.started)
        candidates = self._list_candidates()
        if self.out is not None:
            check_model_place(self.out)
        with ExitStack() as stack:
            place = self._place(stack)
            stack.enter_context(only_trainer(place))
            self._open_data()
            self.folder = MembersFolder(place, tuple(each.name for each in candidates))
            self.folder.begin(self._identify(), self.resume)
            self.clock.used_before = self.folder.seconds
            for some in self._group(candidates):
                self._add(some)
            order = [each.name for each in candidates]  # not that in which they ended
            self.members.sort(key=lambda each: order.index(each.candidate.name))
            tagger = self._mix()
            if self.out is not None:
                way_out = f" The members are kept in {place}: add --resume to write the model."
                tagger = save_again(tagger, self.out, way_out, self.resume)
                self.folder.mark_saved(self.clock.used())
        return tagger

    def _list_candidates(self) -> list[Candidate]:
        """Return what may become a member; refuse settings that cannot be trained."""
        self.words, pretrained = self.config, None
        has_texts = not is_prepared(Path(self.source.data))
        if self.config.encoder.is_pretrained:
            self.words = without_encoder(self.config, self.overrides)
            pretrained = self.config
            if not has_texts:
                raise DataError(
                    "A prepared folder holds the tokens of one tokenizer, and members with and "
                    "without a transformer need two. Give the data itself, or a --method."
                )
        elif self.is_on_gpu and has_texts:
            pretrained = find_pretrained(self.config, self.overrides)
        self.has_pretrained = pretrained is not None
        candidates = list_candidates(self.words, pretrained, self.is_on_gpu)
        for each in candidates:
            check_method(find_method(each.method), each.config)
        return candidates

    def _place(self, stack: ExitStack) -> Path | None:
        """Return the folder of the members: other processes need one, if only for a while."""
        if self.out is not None:
            return run_folder_of(self.out)
        if self.n_jobs == 1:
            return None
        return Path(stack.enter_context(TemporaryDirectory(prefix="setrnn-"))) / "members"

    def _open_data(self) -> None:
        """Prepare the data, with a valid part cut from train if there is none."""
        self.source = replace(self.source, cut_valid=True)
        self.prepared, self.words = open_training_data(
            self.source, self.words, self.overrides, on_progress=self.on_progress
        )
        if self.prepared.valid_is_cut:
            self.on_progress(Note(describe_cut(self.prepared)))
        n_documents: dict[str, int] = self.prepared.description["n_documents"]
        self.n_train, self.n_valid = n_documents["train"], n_documents.get("valid", 0)

    def _identify(self) -> dict[str, Any]:
        data = settings_hash(self.prepared.description)
        return {"settings": settings_hash(to_dict(self.config)), "rule": self.rule, "data": data}

    def _group(self, candidates: Sequence[Candidate]) -> Iterator[Sequence[Candidate]]:
        """Yield the candidates that are trained at the same time."""
        yield from ([each] for each in candidates if not each.is_network)
        if self.n_valid < LEAST_TO_FIT:
            text = (
                f"The valid part has {self.n_valid} documents, and {LEAST_TO_FIT} are needed to "
                "weigh members: no networks are trained, and the others count the same."
            )
            self.on_progress(Note(text, is_warning=True))
            return
        networks = [each for each in candidates if each.is_network]
        for start in range(0, len(networks), self.n_jobs):
            yield networks[start : start + self.n_jobs]

    def _add(self, candidates: Sequence[Candidate]) -> None:
        """Train the candidates that fit the time, or load them; failed ones are left out."""
        planned: list[Planned] = []
        for candidate in candidates:
            found = self.folder.find(candidate.name, self.device)
            if found is not None:
                self.on_progress(Note(f"{candidate.name}: trained before."))
                self._keep(candidate, found)
                continue
            with self._leaving_out(candidate):
                planned.append(self._prepare(candidate))
        self._plan([each for each in planned if each.candidate.name not in self.folder.epochs])
        epochs = self.folder.epochs
        ready = [
            each.with_epochs(*epochs[each.candidate.name])
            for each in planned
            if each.candidate.name in epochs
        ]
        if len(candidates) > 1:
            self._train_side_by_side(ready)
        else:
            for each in ready:
                with self._leaving_out(each.candidate):
                    self._keep(each.candidate, self._train(each))
        self.folder.write(self.clock.used())

    def _prepare(self, candidate: Candidate) -> Planned:
        """Open the data of a candidate, with word vectors; choose settings that fit them."""
        prepared, config = self.prepared, replace(candidate.config, text=self.words.text)
        if candidate.is_pretrained:
            prepared, config = open_training_data(
                self.source, candidate.config, on_progress=self.on_progress
            )
        largest = int(prepared.split("train").labels.lengths.max(initial=0))
        if largest > config.model.max_labels:
            config = replace(config, model=replace(config.model, max_labels=largest))
        if not candidate.is_network or candidate.is_pretrained:
            return Planned(candidate, prepared, fit_to_data(config, prepared))
        n_words = len(prepared.split("train").tokens.values)
        seconds = 2 * n_words * config.vectors.epochs / WORDS_PER_SECOND  # a label per word, too
        if seconds > VECTORS_SHARE * self.clock.left():
            config = replace(
                config, vectors=replace(config.vectors, source="none", pretrained="none")
            )
        make_vectors(prepared, config, self.on_progress)
        return Planned(candidate, prepared, fit_to_data(config, prepared))

    def _plan(self, planned: Sequence[Planned]) -> None:
        """Decide which candidates are trained, and for how many epochs; keep that in the plan."""
        if self.clock.limit is None or not planned[:1] or not planned[0].candidate.is_network:
            for each in planned:
                if each.candidate.is_network:
                    self._note_plan(each, each.config.training.epochs)
                elif not self._is_cheap():
                    self._leave_out(each.candidate, "its training would take too long")
                else:
                    self._note_plan(each, 0)
            return
        speeds: list[tuple[Planned, Speed]] = []
        for each in planned:
            with self._leaving_out(each.candidate):
                if self._seconds_left() <= 0:
                    self._leave_out(each.candidate, "no time was left")
                else:
                    speeds.append((each, self._measure(each)))
        mixing = sum(MIXING_PASSES * speed.measuring * self._n_mixed() for _, speed in speeds)
        seconds = self._seconds_left() - mixing
        is_first = not any(each.candidate.is_network for each in self.members)
        for each, speed in speeds:
            n_full = each.config.training.epochs
            fitted = speed.fit_measuring(each.prepared, each.config)
            pace = speed.epoch_seconds(each.prepared, fitted)
            n_epochs = fit_epochs(n_full, pace, seconds, is_first and len(planned) == 1)
            self.is_short |= n_epochs != n_full
            if n_epochs is None:
                n_least = least_epochs(n_full)
                minutes = n_least * pace / MINUTE
                reason = f"{n_least} epochs would take about {minutes:.1f} minutes"
                self._leave_out(each.candidate, reason)
                continue
            self._note_plan(each, n_epochs, fitted.training.valid_documents)
            of_full = "" if n_epochs == n_full else f" of {n_full}"
            text = (
                f"{each.candidate.name}: {1 / speed.training:,.0f} documents/s, "
                f"{n_epochs}{of_full} epochs, about {n_epochs * pace / MINUTE:.1f} minutes."
            )
            self.on_progress(Note(text))

    def _note_plan(self, planned: Planned, n_epochs: int, n_measured: int | None = None) -> None:
        n_measured = n_measured or planned.config.training.valid_documents
        self.folder.plan(planned.candidate.name, [n_epochs, n_measured], self.clock.used())

    def _is_cheap(self) -> bool:
        """Return whether the next classical system fits: it takes up to three times the first.

        The first one always does, because a mixture needs a member.
        """
        before = [each.tagger.notes.get("training_seconds", 0.0) for each in self.members]
        return not before or 3 * max(before) <= CLASSICAL_SHARE * self._seconds_left()

    def _measure(self, planned: Planned) -> Speed:
        assert self.clock.limit is not None
        options = TrainOptions(self.device, rule=self.rule)
        seconds = min(PROBE_SECONDS, PROBE_SHARE * self.clock.limit)
        method = find_method(planned.candidate.method)
        n_threads = None if self.n_jobs == 1 else self.n_threads
        return measure_speed(method, planned.prepared, planned.config, options, seconds, n_threads)

    def _train(self, planned: Planned) -> Tagger:
        """Train a member in this process."""
        report = name_member(planned.candidate.name, self.on_progress)
        place = self.folder.place(planned.candidate.name)
        return train_member(planned, place, self._options(report))

    def _train_side_by_side(self, planned: Sequence[Planned]) -> None:
        """Train networks at the same time, each in a process of its own."""
        places = [self.folder.place(each.candidate.name) for each in planned]
        names = [each.candidate.name for each in planned]
        if len(names) > 1:
            self.on_progress(Note(f"Training {' and '.join(names)} at the same time."))
        options = self._options()
        jobs = [
            Job(
                name,
                partial(work_on_member, PortablePlan.of(each), place, options, time.time()),
                place.with_name(f"{name}.log"),
                part_of="networks",
            )
            for name, place, each in zip(names, places, planned, strict=True)
            if place is not None
        ]
        by_name = {each.candidate.name: each.candidate for each in planned}
        with closing(run_jobs(jobs, len(jobs), self.on_progress, self.n_threads)) as all_ended:
            for ended in all_ended:
                self._keep_ended(by_name[ended.job.name], ended)

    def _keep_ended(self, candidate: Candidate, ended: Ended) -> None:
        if ended.failure is not None:
            self._leave_out(candidate, ended.failure.message, is_warning=True)
            return
        with self._leaving_out(candidate):
            place = self.folder.place(candidate.name)
            assert place is not None
            tagger = load(place, self.device)
            self._keep(candidate, tagger)
            best, measure = tagger.notes["best_epoch"], self.config.training.metric
            if best:
                value = tagger.notes["epochs"][best - 1][measure]
                name, minutes = MEASURES[measure], ended.seconds / MINUTE
                text = f"{candidate.name}: {name} {value:.3f} on valid, {minutes:.1f} minutes."
                self.on_progress(Note(text))

    def _options(self, on_progress: OnProgress | None = None) -> TrainOptions:
        options = TrainOptions(self.device, rule=self.rule, wait=True)
        if self.clock.limit is not None:
            options = replace(options, max_seconds=self._seconds_left())
        return options if on_progress is None else replace(options, on_progress=on_progress)

    def _keep(self, candidate: Candidate, tagger: Tagger) -> None:
        """Add a member, and measure how fast it predicts."""
        is_timed = self.clock.limit is not None and self.n_valid and not candidate.is_pretrained
        valid = self.prepared.split("valid").tokens if is_timed else None
        seconds = 0.0 if valid is None else time_prediction(tagger, valid)
        self.members.append(Member(candidate, tagger, seconds))

    @contextmanager
    def _leaving_out(self, candidate: Candidate) -> Iterator[None]:
        """Leave out a candidate that fails; the first one must not."""
        try:
            yield
        except (StoppedError, BusyError):
            raise
        except (SetRNNError, MemoryError) as error:
            if candidate.name == CLASSICAL[0]:
                raise
            self._leave_out(candidate, str(error) or "out of memory", is_warning=True)

    def _leave_out(self, candidate: Candidate, reason: str, is_warning: bool = False) -> None:
        self.left_out[candidate.name] = reason.rstrip(".")
        self.on_progress(Note(f"{candidate.name} is left out: {reason.rstrip('.')}.", is_warning))

    def _n_mixed(self) -> int:
        """Return the number of valid documents that the mixture is fitted on, in the time."""
        if self.clock.limit is None:
            return self.n_valid
        seconds = MIXING_PASSES * sum(each.seconds for each in self.members)
        n_fit = int(MIXING_SHARE * self.clock.limit / max(seconds, 1e-9))
        return min(self.n_valid, max(n_fit, LEAST_MIXED), MOST_TO_FIT)

    def _seconds_left(self) -> float:
        """Return the seconds left for training, without those of the mixture."""
        seconds = MIXING_PASSES * sum(each.seconds for each in self.members)
        return self.clock.left() - seconds * self._n_mixed()

    def _mix(self) -> Tagger:
        """Mix the members on the valid part; with equal weights if that is too small."""
        names = [each.candidate.name for each in self.members]
        taggers = [each.tagger for each in self.members]
        measure = self.config.training.metric
        if self.n_valid < LEAST_TO_FIT:
            mixture = replace(join(taggers), notes={"data": self.prepared.name})
            check_learned(mixture, self.prepared, measure, self.on_progress)
        else:
            mixture = mix_members(names, taggers, self._documents(), self.on_progress)
            score = mixture.notes["mixture"]["rules"][self.rule]["held_out"]
            warn_if_not_learned(score, self.prepared, measure, self.on_progress)
        notes = {**mixture.notes, "automatic": self._describe()}
        return replace(mixture, notes=notes, rule=self.rule)

    def _documents(self) -> LabelledDocuments:
        """Return the valid documents that fit the time, evenly spaced."""
        needs_texts = any(each.candidate.is_pretrained for each in self.members)
        documents = open_documents(self.source if needs_texts else self.prepared, "valid")
        return take_evenly(documents, self.n_valid, self._n_mixed())

    def _describe(self) -> dict[str, Any]:
        """Return what was tried, as plain JSON values, for people."""
        return {
            "measure": self.config.training.metric,
            "rule": self.rule,
            "minutes": None if self.clock.limit is None else self.clock.limit / MINUTE,
            "seed": self.config.seed,
            "members": [describe_member(each) for each in self.members],
            "left_out": self.left_out,
            "better": self._list_hints(),
        }

    def _list_hints(self) -> list[str]:
        """Say what would make a better model."""
        hints = []
        if self.n_train < FEW_DOCUMENTS:
            hints.append(f"More documents with labels: there are {self.n_train:,} to train on.")
        if self.n_valid < LEAST_TO_FIT:
            return hints
        if self.clock.limit is not None and (self.is_short or self.left_out):
            minutes = math.ceil(3 * self.clock.limit / MINUTE)
            hints.append(f"More time: --budget {minutes}, or --budget 0 for no limit.")
        if not self.is_on_gpu:
            hints.append("A GPU: networks then train many times faster.")
        if not self.has_pretrained:
            install = "" if find_spec("transformers") else "pip install 'setrnn[hf]', then "
            hints.append(
                f"A pretrained transformer, above all for short texts: {install}--preset "
                "transformer --set encoder.path=FOLDER."
            )
        return hints
