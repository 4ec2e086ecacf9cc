"""Train a tagger: open the data, train the system, save it, calibrate it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from setrnn.config import Config
from setrnn.data.cache import open_prepared
from setrnn.data.model_folder import check_model_place
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError
from setrnn.methods import find_method
from setrnn.metrics import find_measure
from setrnn.progress import OnProgress, ignore_progress
from setrnn.systems.rules import rule_for
from setrnn.tagging.automatic import Automatic
from setrnn.tagging.fitting import check_training, explain_stop, train_prepared
from setrnn.tagging.learning import check_learned
from setrnn.tagging.opening import (
    Data,
    Settings,
    choose_config,
    list_overrides,
    make_source,
    make_vectors,
    open_training_data,
    warn_of_skipped_rows,
)
from setrnn.tagging.tagger import Tagger
from setrnn.training.start import TrainOptions


def train(
    data: Data,
    method: str | None = None,
    *,
    measure: str | None = None,
    budget: float | None = None,
    jobs: int = 1,
    out: str | Path | None = None,
    valid: str | Path | None = None,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    seed: int | None = None,
    resume: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Train on documents with labels, and return the model as a tagger.

    Without a method, the result is the best model within the budget: a mixture of classical
    systems and of the networks that fit the time, weighed on the valid part, which is cut from
    train if there is none. Its `notes["automatic"]` says what was tried.

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
        out: the model folder to write. Checkpoints and members are kept beside it, in OUT.run.
        valid: a file that becomes the valid part.
        preset: the settings to start from: default, paper or transformer.
        config: all settings, or a JSON file of settings to apply after the preset.
        settings: single settings by their dotted names, such as `{"training.epochs": 10}`, or as
            `["training.epochs=10"]`.
        device: where to compute: auto, cpu or cuda.
        seed: the seed of the run; 0 if not given.
        resume: continue the run kept in OUT.run.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> tagger.tag(["The ski race was cancelled because of the storm."])[0].labels
        ('weather', 'storm')
    """
    started = time.perf_counter()
    overrides = list_overrides(settings)
    if seed is not None:
        overrides.append(f"seed={seed}")
    full = choose_config(preset, config, overrides)
    if measure is not None:
        metric = find_measure(measure)
        full = replace(full, training=replace(full.training, metric=metric))
    if budget is not None and not budget >= 0:
        raise ConfigError(f"The budget must be 0 minutes or more, got {budget}.")
    if jobs < 1:
        raise ConfigError(f"jobs must be 1 or more, got {jobs}.")
    target = None if out is None else Path(out)
    if target is None and resume:
        raise ConfigError("resume needs out: the run to continue is kept beside the model folder.")
    source, rule = make_source(data, valid), rule_for(full.training.metric)
    if method is None:
        automatic = Automatic(
            source,
            full,
            overrides,
            rule,
            target,
            device,
            resume,
            budget,
            started,
            jobs,
            on_progress,
        )
        with explain_stop(target):
            return automatic.train()
    chosen = find_method(method)
    check_training(chosen, full, device, resume)
    if target is not None:
        check_model_place(target)
    seconds = None if not budget else 60 * budget
    options = TrainOptions(
        device, resume=resume, max_seconds=seconds, on_progress=on_progress, rule=rule
    )
    with explain_stop(target if chosen.is_network else None):
        prepared, full = open_training_data(source, full, overrides, on_progress=on_progress)
        tagger = train_prepared(prepared, chosen, full, options, target)
        check_learned(tagger, prepared, full.training.metric, on_progress)
        return tagger


def prepare(
    data: Data,
    *,
    out: str | Path | None = None,
    valid: str | Path | None = None,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    vectors: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Prepared:
    """Turn data into a memory-mapped folder for training, or find the folder made before.

    The prepared folder is made in `out`, or in the cache if that is None. With `vectors`, it also
    gets the word vectors that networks start from. The other arguments are those of `train`.

    Example:
        >>> import setrnn
        >>> prepared = setrnn.prepare("newsroom")
        >>> prepared.description["n_documents"]["train"]
        4800
        >>> tagger = setrnn.train(prepared, "br")
    """
    full = choose_config(preset, config, list_overrides(settings))
    source = make_source(data, valid)
    folder = None if out is None else Path(out)
    prepared = open_prepared(source, full.text, folder, on_progress)
    warn_of_skipped_rows(prepared, on_progress)
    if vectors:
        make_vectors(prepared, full, on_progress)
    return prepared
