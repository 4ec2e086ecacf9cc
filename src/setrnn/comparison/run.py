"""One run of a comparison: train, measure by every rule, and make the record.

Of systems that emit sequences, the record also has what the paper's figures and case studies show:
the entropy over label orders, and documents whose best sequence is not of the most probable set.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import torch

from setrnn.comparison.records import MODELS, RUNS, Costs, LabelSets, Record, TestResults, run_name
from setrnn.comparison.sequences import (
    describe_differing,
    measure_set_sums,
    order_entropies,
)
from setrnn.config import Config, settings_hash, to_dict
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged, even_rows
from setrnn.errors import TrainingError
from setrnn.methods import Method, find_method
from setrnn.progress import OnProgress, Progress, ignore_progress
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.tagging.documents import prepared_batches
from setrnn.tagging.evaluate import MIN_LOG_PROB, Evaluation, measure_rules
from setrnn.tagging.learn.data import fit_to_data
from setrnn.tagging.learn.mix import mix
from setrnn.tagging.learn.train import TIME_IS_UP, train_prepared, why_ended
from setrnn.tagging.tagger import Tagger, load
from setrnn.training.start import Start, TrainOptions

BUDGET = "budget_minutes"  # in the treatment of a run
TRAINING_SHARE = 0.9  # of a run's time, roughly
DIGITS = 5  # of probabilities in a record
MOST_TIMED = 1_024  # test documents that are predicted again to measure the speed


@dataclass(frozen=True)
class Task:
    """Everything that a run needs; it is sent to another process."""

    prepared: Path  # the prepared data, with its word vectors
    folder: Path  # of the comparison
    method: str
    config: Config  # with the seed
    device: str = "auto"
    budget: float | None = None  # minutes of training; then the best epoch so far counts
    n_jobs: int = 1  # how many runs share the machine
    treatment: Mapping[str, Any] = field(default_factory=dict)  # for the record
    needed: tuple[str, ...] = ()  # the runs whose models it mixes, or starts from

    @property
    def name(self) -> str:
        """The name of the run."""
        return run_name(self.method, self.config.seed)

    @property
    def run_folder(self) -> Path:
        """The folder of its checkpoints until it is done; other settings have another folder."""
        settings = settings_hash(to_dict(self.config))
        return self.folder / RUNS / f"{self.name}-{settings}.run"


def begin_record(task: Task, data_hash: str) -> Record:
    """Return what a record has before its run."""
    return Record(
        method=task.method,
        seed=task.config.seed,
        data_hash=data_hash,
        own_rule=find_method(task.method).rule,
        config=to_dict(task.config),
        treatment={**task.treatment, BUDGET: task.budget, "needed": list(task.needed)},
    )


def run(task: Task, on_progress: OnProgress = ignore_progress) -> Record:
    """Train and measure one system; a run that was stopped is resumed.

    `on_progress` is called with the share of the whole run that is done.
    """
    prepared, method = Prepared(task.prepared), find_method(task.method)
    start = time.perf_counter()

    def report(event: Progress) -> None:
        if event.activity == "training" and (epoch := event.epoch) is not None:
            detail = f"epoch {epoch.number}/{epoch.n_epochs}"
            share = TRAINING_SHARE * event.share
            on_progress(Progress("training", share, 1.0, unit="", detail=detail))

    make = _mix if method.is_mixture else _train
    tagger = make(task, method, prepared, report)
    seconds = float(tagger.notes["training_seconds"])  # before a stop too
    on_progress(Progress("measuring", TRAINING_SHARE, 1.0, unit="", detail="measuring"))
    measured: dict[str, dict[str, Evaluation]] = {}
    for split in ("valid", "test"):
        if prepared.description["n_documents"].get(split):
            batches = prepared_batches(tagger, prepared, split)
            measured[split] = measure_rules(tagger, batches, tagger.rules)
    speed = _prediction_speed(tagger, prepared)
    test, cases = _test_results(tagger, prepared, measured["test"])
    epochs, weights = tagger.notes.get("epochs", []), tagger.system.arrays().values()
    is_gpu = tagger.system.device_name == "cuda"
    was_cut = bool(epochs) and why_ended(tagger.notes, tagger.config) == TIME_IS_UP
    record = begin_record(task, settings_hash(prepared.description))
    return replace(
        record,
        treatment={**record.treatment, "was_cut_by_budget": was_cut},
        environment={
            **tagger.notes["versions"],
            "platform": platform.system(),
            "device": torch.cuda.get_device_name() if is_gpu else tagger.system.device_name,
            "ended": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        },
        costs=Costs(
            training_seconds=round(seconds, 2),
            training_documents_per_second=_training_speed(prepared, epochs, seconds),
            prediction_documents_per_second=round(speed, 1),
            total_seconds=round(max(seconds, time.perf_counter() - start), 2),
            peak_memory_bytes=_peak_memory(),
            peak_gpu_bytes=torch.cuda.max_memory_allocated() if is_gpu else None,
            n_parameters=sum(each.size for each in weights if each.dtype.kind == "f"),
            n_jobs=task.n_jobs,
        ),
        epochs=epochs,
        best_epoch=tagger.notes.get("best_epoch"),
        scores={
            split: {rule: each.as_dict() for rule, each in found.items()}
            for split, found in measured.items()
        },
        test=test,
        cases=cases,
    )


def _train(task: Task, method: Method, prepared: Prepared, on_progress: OnProgress) -> Tagger:
    """Train, or resume the training of a run that was stopped."""
    start = None
    for folder in _find_needed(task):  # at most one
        found = load(folder, device="cpu")
        if found.config == fit_to_data(task.config, prepared):
            start = Start.of(found.system)
    options = TrainOptions(
        device=task.device,
        run_folder=task.run_folder if method.is_network else None,
        resume=method.is_network,
        wait=True,  # for a run whose comparison was killed: it is about to stop
        max_seconds=None if task.budget is None else 60 * task.budget,
        on_progress=on_progress,
        start=start,
    )
    return train_prepared(prepared, method, task.config, options, task.folder / MODELS / task.name)


def _mix(task: Task, method: Method, prepared: Prepared, on_progress: OnProgress) -> Tagger:
    """Mix the models of other runs."""
    folders = _find_needed(task)
    if len(folders) < 2:
        raise TrainingError("Fewer than two of the other systems have a model to mix.")
    start = time.perf_counter()
    tagger = mix(folders, prepared, split="valid", device=task.device, on_progress=on_progress)
    seconds = round(time.perf_counter() - start, 2)
    tagger = replace(tagger, notes={**tagger.notes, "training_seconds": seconds})
    tagger.save(task.folder / MODELS / task.name)
    return tagger


def _find_needed(task: Task) -> list[Path]:
    """Return the models of the runs that a run needs; those that failed have none."""
    folders = [task.folder / MODELS / name for name in task.needed]
    return [folder for folder in folders if folder.is_dir()]


def _test_results(
    tagger: Tagger, prepared: Prepared, measured: Mapping[str, Evaluation]
) -> tuple[TestResults, list[dict[str, Any]]]:
    """Collect the predictions per document, and what statistics and figures need besides."""
    index = tagger.labels.index
    predicted: dict[str, LabelSets] = {
        rule: [sorted(index[label] for label in each.labels) for each in found.predictions]
        for rule, found in measured.items()
    }
    results = TestResults(
        predicted=predicted,
        probability={
            rule: [round(float(each.probability), DIGITS) for each in found.predictions]
            for rule, found in measured.items()
        },
        true_log_probs=[
            None if each is None else round(max(each, MIN_LOG_PROB), DIGITS)
            for each in next(iter(measured.values())).true_log_probs
        ],
    )
    system, test, n_labels = tagger.system, prepared.split("test"), len(prepared.labels)
    if not isinstance(system, RecurrentSystem):
        return results, []
    known_sets = Ragged.from_lists(
        [row.tolist() if (row < n_labels).all() else [] for row in test.labels]
    )
    results = replace(
        results,
        order_entropy=order_entropies(system, test.tokens, Ragged.from_lists(predicted["set"])),
        set_sums=measure_set_sums(system, test.tokens, known_sets),
    )
    cases = describe_differing(system, prepared, predicted["set"], predicted["sequence"])
    return results, cases


def _prediction_speed(tagger: Tagger, prepared: Prepared) -> float:
    """Predict test documents again, by the system's own rule alone."""
    tokens = prepared.split("test").tokens
    tokens = tokens.take(even_rows(len(tokens), MOST_TIMED))
    start = time.perf_counter()
    n_documents = sum(1 for _ in tagger.tag_tokens(tokens))
    return n_documents / max(time.perf_counter() - start, 1e-9)


def _training_speed(
    prepared: Prepared, epochs: Sequence[Mapping[str, Any]], seconds: float
) -> float:
    """Return documents per second: of the training steps, or of the whole fit without epochs."""
    if epochs:
        return round(float(np.mean([each["documents_per_second"] for each in epochs])), 1)
    n_documents = int(prepared.description["n_documents"]["train"])
    return round(n_documents / max(seconds, 1e-9), 1)


def _peak_memory() -> int:
    """Return the peak memory of this process in bytes; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
