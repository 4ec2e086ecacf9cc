"""Train one system on prepared data, save it, and calibrate it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from setrnn.config import ClassicalSettings, Config, TrainingSettings
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError, SetRNNError, StoppedError
from setrnn.methods import Method
from setrnn.metrics import MEASURES
from setrnn.model.devices import find_device
from setrnn.models.card import is_same_training, note_training
from setrnn.models.folder import check_model_place, model_part
from setrnn.progress import OnProgress, Progress, log
from setrnn.systems.registry import find_system
from setrnn.tagging.documents import open_documents
from setrnn.tagging.loading import load
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust.calibrate import calibrate_or_warn, keep_targets
from setrnn.training.ranks import find_ranks
from setrnn.training.run_folder import (
    PLAN,
    check_run,
    has_run,
    mark_saved,
    only_trainer,
    run_folder_of,
)
from setrnn.training.schedule import fit_to_data
from setrnn.training.start import TrainOptions, check_method, train_system
from setrnn.training.validation import has_valid, validate

FEW_STEPS = 300  # with fewer, the default settings learn little


def check_training(
    method: Method,
    config: Config,
    device: str,
    out: Path | None = None,
    resume: bool = False,
) -> None:
    """Raise if something cannot be trained, resumed or written, before the data is read."""
    check_method(method, config)
    if method.is_network:
        find_device(device)
    elif resume:
        raise ConfigError(f"'{method.name}' has no checkpoints to resume. Omit --resume.")
    check_out(out, resume)
    if out is None or not method.is_network:
        return
    run = run_folder_of(out)
    if run.exists():
        with only_trainer(run):
            check_run(run, resume)


def check_processes(method: Method | None) -> None:
    """Raise if a method cannot be trained by several processes, and torchrun has started some."""
    if find_ranks().n > 1 and (method is None or not method.is_network):
        what = "Training without --method" if method is None else f"'{method.name}'"
        raise ConfigError(f"{what} uses one process. Several train one network: --method set-rnn.")


def check_out(out: Path | None, resume: bool) -> None:
    """Raise if a model cannot be written, or if there is no place to resume from."""
    if out is not None:
        check_model_place(out)
    elif resume:
        raise ConfigError("resume needs out: the run to continue is kept beside the model folder.")


def train_prepared(
    prepared: Prepared,
    method: Method,
    config: Config,
    options: TrainOptions = TrainOptions(),  # noqa: B008 (frozen)
    out: Path | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Tagger:
    """Train on prepared data, save the model if `out` is given, and calibrate it.

    A network keeps its checkpoints in `options.run_folder`, or beside `out` if that is None. The
    tagger gets the notes, beside those on its training. If `out` holds a model with accepted
    predictions, the new one is calibrated to the same targets.
    """
    if out is not None and options.run_folder is None and method.is_network:
        options = replace(options, run_folder=run_folder_of(out))
    config = fit_to_data(config, prepared)
    with only_trainer(options.run_folder, options.wait):
        _note_before(prepared, method, config, options)
        tagger = _train(prepared, method, config, options)
        tagger.notes.update(notes or {})
        measure_on_valid(tagger, prepared, method, options)
        tagger = keep_targets(tagger, out)
        tagger = tagger if out is None else _save(tagger, out, options)
        if not tagger.is_calibrated:
            valid = open_documents(prepared, "valid")
            tagger = calibrate_or_warn(tagger, valid, out, options.on_progress)
        return tagger


def train_uncalibrated(
    prepared: Prepared,
    method: Method,
    config: Config,
    options: TrainOptions,
    out: Path | None = None,
) -> Tagger:
    """Train on prepared data, and save the model if `out` is given; nobody else trains there."""
    tagger = _train(prepared, method, config, options)
    return tagger if out is None else _save(tagger, out, options)


def _train(prepared: Prepared, method: Method, config: Config, options: TrainOptions) -> Tagger:
    start = time.perf_counter()
    if config.classical.tune and not method.is_network:
        config = replace(config, classical=_tune(prepared, method, config, options.on_progress))
    trained = train_system(method, prepared, config, options)
    notes = {
        "data": prepared.name,
        "n_documents": prepared.description["n_documents"]["train"],
        **note_training(),
        "training_seconds": round(time.perf_counter() - start, 2),
        **trained.notes,
    }
    _note_best_epoch(notes, config, options)
    return Tagger.trained_on(prepared, method.name, config, trained.system, notes, options.rule)


def measure_on_valid(
    tagger: Tagger, prepared: Prepared, method: Method, options: TrainOptions
) -> None:
    """Note the measures on the valid part; those of a network are known from its best epoch."""
    if not has_valid(prepared):
        return
    rule, most = options.rule or method.rule, tagger.config.training.valid_documents
    if best := tagger.notes.get("best_epoch"):
        row = tagger.notes["epochs"][best - 1]
    else:
        row = validate(tagger.system, prepared, rule, most)
    n_documents = min(prepared.description["n_documents"]["valid"], most)
    measures = {name: float(row[name]) for name in MEASURES if name in row}
    tagger.notes["valid"] = {"rule": rule, "n_documents": n_documents, **measures}


def _save(tagger: Tagger, out: Path, options: TrainOptions) -> Tagger:
    """Save a trained tagger, and note in its run folder that it is saved."""
    run, way_out = options.run_folder, ""
    if run is not None:
        way_out = f" The run is kept in {run}: add --resume to write the model."
    saved = save_again(tagger, out, way_out, options.resume)
    if run is not None:
        mark_saved(run)
    return saved


def save_again(tagger: Tagger, out: Path, way_out: str, is_resumed: bool) -> Tagger:
    """Save a tagger.

    If a run that was finished is resumed, the model is there already: its calibration is kept.
    """
    before = None
    if is_resumed:
        with suppress(SetRNNError, OSError):
            before = load(out, "cpu")
    if before is not None and is_same_training(before.notes, tagger.notes):
        tagger = replace(tagger, notes=before.notes)
    saved = tagger.saved_to(out, way_out)
    if before is None or not before.is_calibrated or model_part(before.version) != saved.version:
        return saved
    return replace(saved, calibration=before.calibration).save_calibration(out)


def _note_before(prepared: Prepared, method: Method, config: Config, options: TrainOptions) -> None:
    if not method.is_network:
        return
    settings, n_documents = config.training, prepared.description["n_documents"]
    n_train = n_documents["train"] if options.documents is None else len(options.documents)
    _warn_of_few_steps(n_train, settings)
    if options.resume and options.run_folder is not None and not has_run(options.run_folder):
        text = f"{options.run_folder} has no checkpoint yet: training starts from the beginning."
        log.info(text)
    if not n_documents.get("valid"):
        log.info(
            "There is no valid part: the last epoch is used, and training.metric and "
            "training.patience have no effect. Give the data itself, or prepare it with "
            "--valid FILE."
        )


def _warn_of_few_steps(n_documents: int, settings: TrainingSettings) -> None:
    n_steps = -(-n_documents // settings.batch_size) * settings.epochs
    if n_steps < FEW_STEPS:
        text = (
            f"{n_documents:,} documents give only {n_steps} training steps, too few to learn "
            f"much. Lower training.batch_size (now {settings.batch_size}) or raise "
            f"training.epochs (now {settings.epochs})."
        )
        log.warning(text)


def _note_best_epoch(notes: Mapping[str, Any], config: Config, options: TrainOptions) -> None:
    best = notes.get("best_epoch")
    if not best:
        return
    metric = MEASURES[config.training.metric]
    if len(notes["epochs"]) < config.training.epochs:
        n_epochs, patience = len(notes["epochs"]), config.training.patience
        is_stuck = 0 < patience <= n_epochs - best
        why = f"no better {metric} since epoch {best}" if is_stuck else "the time was up"
        log.info(f"Stopped early, after epoch {n_epochs}: {why}.")
    log.info(f"The model is that of epoch {best}, the best by {metric}.")


def _tune(
    prepared: Prepared, method: Method, config: Config, on_progress: OnProgress
) -> ClassicalSettings:
    """Choose the penalties of a classical system on the valid part."""
    from setrnn.systems.classical.system import GRID, tune_penalties

    if "valid" not in prepared.splits:
        raise ConfigError(
            "classical.tune needs a valid part. Add one with --valid FILE, or split the data with: "
            "setrnn data split"
        )
    n_done = 0

    def count(*trial: object) -> None:
        nonlocal n_done
        n_done += 1
        on_progress(Progress("choosing penalties on valid", n_done, len(GRID), unit="trials"))

    model = find_system(method).model_class
    chosen = tune_penalties(model, prepared, config.classical, count, config.model.empty_sets)
    text = f"Chosen on valid: classical.l1={chosen.l1} classical.l2={chosen.l2}"
    log.info(text)
    return chosen


@contextmanager
def explain_stop(out: Path | None) -> Iterator[None]:
    """Explain how to resume when Ctrl-C stops training at once."""
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            raise
        run = run_folder_of(out)
        is_saved = has_run(run) or (run / PLAN).is_file()
        way = "No checkpoint was written: start again."
        if is_saved:
            way = (
                "Resume with --resume. With a --budget that is used up, it takes what is finished."
            )
        raise StoppedError(f"Stopped. {way}") from None
