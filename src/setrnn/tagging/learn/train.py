"""Train a tagger: prepare the data, train one system, save it, and calibrate it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

from setrnn.config import Config
from setrnn.data.disk import remove_folder
from setrnn.data.example import join_hashes
from setrnn.data.prepared import Prepared
from setrnn.data.read.label_files import Parents
from setrnn.errors import ConfigError, StoppedError
from setrnn.methods import Method, find_method
from setrnn.metrics import LOWER_IS_BETTER, MEASURES, is_better
from setrnn.model.devices import find_device
from setrnn.models.card import note_columns, note_training
from setrnn.models.folder import check_model_place
from setrnn.progress import OnProgress, ignore_progress, log
from setrnn.systems.rules import rule_for
from setrnn.tagging.documents import open_documents
from setrnn.tagging.learn.data import (
    Data,
    Settings,
    choose_preset,
    fit_to_data,
    make_source,
    open_training_data,
    read_budget,
    read_settings,
)
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust.calibrate import calibrate_or_warn, find_calibration
from setrnn.training.ranks import find_ranks
from setrnn.training.run_folder import (
    PLAN,
    check_run,
    has_run,
    mark_saved,
    only_trainer,
    run_folder_of,
)
from setrnn.training.start import TrainOptions, check_method, train_system
from setrnn.training.validation import best_constant, has_valid, validate

SECONDS_ON_CPU = 600.0  # if no budget is given
FEW_STEPS = 300  # with fewer, the default settings learn little
NO_VALID = "Trained without a valid part: nothing was chosen or measured on new documents."
TIME_IS_UP = "the time was up"
SPREAD = 0.3  # of a measure over documents, about: a standard error is this over sqrt(n)


def train(
    data: Data,
    method: str | None = None,
    *,
    measure: str | None = None,
    budget: float | None = None,
    jobs: int = 1,
    out: str | Path | None = None,
    valid: str | Path | None = None,
    cut_valid: bool = True,
    hierarchy: Parents | None = None,
    close_labels: bool = False,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    seed: int | None = None,
    resume: bool = False,
    keep_run: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Train on documents with labels, and return the model as a tagger.

    Without a method, the result is the best model within the budget: a mixture of classical
    systems and of the networks that fit the time, weighed on the valid part. Its
    `notes["automatic"]` says what was tried. If the data has no valid part, it is cut from train;
    a prepared folder is used as it is.

    Settings, device and `out` are checked before the data is read. The model is saved before it is
    calibrated, so that a failure in calibration loses nothing. After Ctrl-C, which raises
    `StoppedError`, a network in training can be resumed, and finished members are kept.

    Args:
        data: a file, a folder with train/valid/test files, a prepared folder, `hf:NAME` or
            "newsroom"; a `Source` says how to read it.
        method: the system to train, one of `setrnn.methods.METHODS`; None for the best model.
        measure: what to be good at: instance-f1, label-f1, micro-f1, subset-accuracy or
            hamming-loss. It chooses the epoch, and the rule that the model predicts by. If not
            given, it is `training.metric`: instance-f1.
        budget: the minutes that training may take; 0 for no limit. With a method, no epoch starts
            that would probably exceed them. If not given, 10 without a method on a CPU, and no
            limit otherwise.
        jobs: without a method, the networks that are trained at a time on a CPU, each in a process
            of its own; a script that asks for several needs `if __name__ == "__main__":`.
        out: the model folder to write. Checkpoints and members are beside it meanwhile, in OUT.run.
        valid: a file that becomes the valid part.
        cut_valid: whether a tenth of train becomes the valid part, if there is none. Otherwise all
            documents are trained on, and nothing is chosen or calibrated on new ones.
        hierarchy: the parents of labels: a file of label,parent, or a dict. The model keeps them.
            If the labels of all training documents bring those above them, so do predictions.
        close_labels: whether to add to each document the labels above its own, before training.
        preset: the settings to start from: default (on a CPU small), small, paper or transformer.
        config: all settings, or a JSON file of settings to apply after the preset.
        settings: single settings by their dotted names, such as `{"training.epochs": 10}`, or as
            `["training.epochs=10"]`.
        device: where to compute: auto, cpu, cuda or mps.
        seed: the seed of the run; 0 if not given.
        resume: continue the run kept in OUT.run. With a budget that is used up already, its best
            epoch becomes the model; without a method, members without a finished epoch are left
            out.
        keep_run: whether OUT.run stays once the model is written. With a method, it stays too if
            the budget has ended the training, which can then be continued.
        on_progress: called with the progress.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> tagger.tag(["The ski race was cancelled because of the storm."])[0].labels
        ('weather', 'storm')
    """
    started = time.perf_counter()
    asked = read_settings(choose_preset(preset, device), config, settings, seed, measure)
    full, seconds = asked.config, read_budget(budget)
    if jobs < 1:
        raise ConfigError(f"jobs must be 1 or more, got {jobs}.")
    target = None if out is None else Path(out)
    source = make_source(data, valid, hierarchy, close_labels, cut_valid)
    chosen = None if method is None else find_method(method)
    check_training(chosen, full, device, target, resume)
    if chosen is None:
        from setrnn.tagging.learn.automatic import Automatic

        is_on_gpu = find_device(device).type != "cpu"
        if budget is None and not is_on_gpu:
            seconds = SECONDS_ON_CPU
        n_jobs = 1 if is_on_gpu else jobs
        with explain_stop(target):
            return Automatic(
                source, asked, target, device, resume, seconds, started, n_jobs, on_progress
            ).train(keep_run)
    options = TrainOptions(
        device,
        None if target is None or not chosen.is_network else run_folder_of(target),
        resume,
        keep_run=keep_run,
        max_seconds=seconds,
        on_progress=on_progress,
        rule=rule_for(full.training.metric),
    )
    with explain_stop(target if chosen.is_network else None):
        prepared, full = open_training_data(source, full, asked.overrides, on_progress=on_progress)
        if not find_ranks().is_first:  # another process writes the model
            target = None
        return train_prepared(prepared, chosen, full, options, target)


def check_training(
    method: Method | None,
    config: Config,
    device: str,
    out: Path | None = None,
    resume: bool = False,
) -> None:
    """Raise if something cannot be trained, resumed or written, before the data is read.

    A method of None is a training without a method; it checks its own settings and run.
    """
    is_network = method is not None and method.is_network
    if find_ranks().n > 1 and not is_network:  # started by torchrun
        what = "Training without --method" if method is None else f"'{method.name}'"
        raise ConfigError(f"{what} uses one process. Several train one network: --method set-rnn.")
    if method is not None:
        check_method(method, config)
        if resume and not is_network:
            raise ConfigError(f"'{method.name}' has no checkpoints to resume. Omit --resume.")
    if is_network:
        find_device(device)
    if out is not None:
        check_model_place(out)
    elif resume:
        raise ConfigError("resume needs out: the run to continue is kept beside the model folder.")
    if is_network and out is not None and (run := run_folder_of(out)).exists():
        with only_trainer(run):
            check_run(run, resume)


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
        warnings = _warn(prepared, method, config, options)
        tagger = train_uncalibrated(prepared, method, config, options)
        tagger.notes.update({**(notes or {}), "warnings": warnings})
        measure_on_valid(tagger, prepared, method, options)
        if options.rule is not None:  # else the scores are by a rule for another measure
            warn_if_nothing_learned(tagger, prepared, config.training.metric)
        before = find_calibration(out)
        tagger = tagger if out is None else _save(tagger, out, options)
        valid = open_documents(prepared, "valid")
        tagger = calibrate_or_warn(tagger, valid, out, before, options.on_progress)
        is_kept = options.keep_run or why_ended(tagger.notes, config) == TIME_IS_UP
        if options.run_folder is not None and out is not None and not is_kept:
            remove_folder(options.run_folder)
        return tagger


def train_uncalibrated(
    prepared: Prepared,
    method: Method,
    config: Config,
    options: TrainOptions,
    out: Path | None = None,
) -> Tagger:
    """Train on prepared data, and save the model if `out` is given; nobody else trains there."""
    start = time.perf_counter()
    trained = train_system(method, prepared, config, options)
    notes = {
        "data": prepared.name,
        "n_documents": prepared.description["n_documents"]["train"],
        **note_columns(prepared.description),
        **note_training(),
        "training_seconds": round(time.perf_counter() - start, 2),
        **trained.notes,
    }
    _note_best_epoch(notes, config, options)
    tagger = Tagger(
        method.name,
        config,
        prepared.encoder,
        prepared.labels,
        trained.system,
        notes,
        seen_sets=prepared.seen_sets(),
        rule=options.rule,
        trained_documents=join_hashes([prepared.split("train").text_hashes]),
        hierarchy=prepared.hierarchy,
    )
    return tagger if out is None else _save(tagger, out, options)


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
    saved = tagger.saved_to(out, way_out)
    if run is not None:
        mark_saved(run)
    return saved


def _warn(prepared: Prepared, method: Method, config: Config, options: TrainOptions) -> list[str]:
    """Log what is not as it should be; return what the model has to keep as warnings."""
    warnings = [] if has_valid(prepared) else [NO_VALID]
    if not method.is_network:
        return warnings
    settings, n_documents = config.training, prepared.description["n_documents"]
    n_train = n_documents["train"] if options.documents is None else len(options.documents)
    n_steps = -(-n_train // settings.batch_size) * settings.epochs
    if n_steps < FEW_STEPS:
        warnings.append(
            f"{n_train:,} documents give only {n_steps} training steps, too few to learn much. "
            f"Lower training.batch_size (now {settings.batch_size}) or raise training.epochs (now "
            f"{settings.epochs})."
        )
        log.warning(warnings[-1])
    if options.resume and options.run_folder is not None and not has_run(options.run_folder):
        log.info(f"{options.run_folder} has no checkpoint yet: training starts from the beginning.")
    if not n_documents.get("valid"):
        log.info(
            "There is no valid part: the last epoch is used, and training.metric and "
            "training.patience have no effect. Give the data itself, or prepare it with "
            "--valid FILE."
        )
    return warnings


def _note_best_epoch(notes: Mapping[str, Any], config: Config, options: TrainOptions) -> None:
    best = notes.get("best_epoch")
    if not best:
        return
    if why := why_ended(notes, config):
        log.info(f"Stopped early, after epoch {len(notes['epochs'])}: {why}.")
    log.info(f"The model is that of epoch {best}, the best by {MEASURES[config.training.metric]}.")


def why_ended(notes: Mapping[str, Any], config: Config) -> str:
    """Return why the training of a network has ended before its last epoch, or nothing."""
    best, n_epochs = notes.get("best_epoch"), len(notes.get("epochs", ()))
    if n_epochs >= config.training.epochs:
        return ""
    if best and 0 < config.training.patience <= n_epochs - best:
        return f"no better {MEASURES[config.training.metric]} since epoch {best}"
    return TIME_IS_UP


@contextmanager
def explain_stop(out: Path | None) -> Iterator[None]:
    """Explain how to resume when Ctrl-C stops training at once."""
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            raise
        run = run_folder_of(out)
        way = "No checkpoint was written: start again."
        if has_run(run) or (run / PLAN).is_file():
            way = (
                "Resume with --resume. With a --budget that is used up, it takes what is finished."
            )
        raise StoppedError(f"Stopped. {way}") from None


def warn_if_nothing_learned(
    tagger: Tagger, prepared: Prepared, measure: str, split: str = "valid"
) -> None:
    """Warn if a model is not clearly better than always predicting the most frequent labels.

    Both are measured on a part of the data that the scores of the model are from. The model keeps
    the warning in its notes.
    """
    n_documents = prepared.description["n_documents"].get(split)
    if "mixture" in tagger.notes:
        score = tagger.notes["mixture"]["rules"][rule_for(measure)]["held_out"]
    elif "valid" in tagger.notes:
        score = tagger.notes["valid"][measure]
    else:
        return
    constant = best_constant(prepared, measure, split)
    is_less_better = measure in LOWER_IS_BETTER
    margin = 0.0 if is_less_better else SPREAD / sqrt(n_documents)
    perfect = 0.0 if is_less_better else 1.0
    if is_better(score, constant + margin, measure) or score == perfect:
        return
    warning = (
        "The model has learned little or nothing from the texts: its "
        f"{MEASURES[measure]} on the {split} part is {score:.3f}, and always predicting the same "
        f"most frequent labels gives {constant:.3f}. Look at the texts and labels with setrnn data "
        "info, or give more documents."
    )
    log.warning(warning)
    tagger.notes.setdefault("warnings", []).append(warning)
