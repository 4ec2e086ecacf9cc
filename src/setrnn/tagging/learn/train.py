"""Train a tagger: open the data, train the system, save it, calibrate it."""

from __future__ import annotations

import time
from pathlib import Path

from setrnn.config import Config
from setrnn.data.read.parents import Parents
from setrnn.errors import ConfigError
from setrnn.methods import find_method
from setrnn.model.devices import find_device
from setrnn.progress import OnProgress, ignore_progress
from setrnn.systems.rules import rule_for
from setrnn.tagging.learn.automatic import Automatic
from setrnn.tagging.learn.data import (
    Data,
    Settings,
    make_training_source,
    open_training_data,
    read_budget,
    read_settings,
)
from setrnn.tagging.learn.learned import check_learned
from setrnn.tagging.learn.one_system import (
    check_out,
    check_processes,
    check_training,
    explain_stop,
    train_prepared,
)
from setrnn.tagging.learn.planning import Clock
from setrnn.tagging.tagger import Tagger
from setrnn.training.ranks import find_ranks
from setrnn.training.run_folder import keep_epochs, run_folder_of
from setrnn.training.start import TrainOptions

SECONDS_ON_CPU = 600.0  # if no budget is given


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
        out: the model folder to write. Checkpoints and members are kept beside it, in OUT.run.
        valid: a file that becomes the valid part.
        cut_valid: whether a tenth of train becomes the valid part, if there is none. Otherwise all
            documents are trained on, and nothing is chosen or calibrated on new ones.
        hierarchy: the parents of labels: a file of label,parent, or a dict. The model keeps them.
            If the labels of all training documents bring those above them, so do predictions.
        close_labels: whether to add to each document the labels above its own, before training.
        preset: the settings to start from: default, paper or transformer.
        config: all settings, or a JSON file of settings to apply after the preset.
        settings: single settings by their dotted names, such as `{"training.epochs": 10}`, or as
            `["training.epochs=10"]`.
        device: where to compute: auto, cpu or cuda.
        seed: the seed of the run; 0 if not given.
        resume: continue the run kept in OUT.run. It may get another number of epochs. With a
            budget that is used up already, its best epoch becomes the model; without a method,
            members without a finished epoch are left out.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> tagger.tag(["The ski race was cancelled because of the storm."])[0].labels
        ('weather', 'storm')
    """
    started = time.perf_counter()
    asked = read_settings(preset, config, settings, seed, measure)
    full, seconds = asked.config, read_budget(budget)
    if jobs < 1:
        raise ConfigError(f"jobs must be 1 or more, got {jobs}.")
    target = None if out is None else Path(out)
    source = make_training_source(data, valid, cut_valid, hierarchy, close_labels)
    if method is None:
        check_processes(None)
        check_out(target, resume)
        is_on_gpu = find_device(device).type == "cuda"
        if budget is None and not is_on_gpu:
            seconds = SECONDS_ON_CPU
        clock = Clock(seconds, started)
        n_jobs = 1 if is_on_gpu else jobs
        with explain_stop(target):
            automatic = Automatic(source, asked, target, device, resume, clock, n_jobs, on_progress)
            return automatic.train()
    chosen = find_method(method)
    check_processes(chosen)
    check_training(chosen, full, device, target, resume)
    options = TrainOptions(
        device,
        None if target is None or not chosen.is_network else run_folder_of(target),
        resume,
        max_seconds=seconds,
        on_progress=on_progress,
        rule=rule_for(full.training.metric),
    )
    with explain_stop(target if chosen.is_network else None):
        if resume and target is not None:
            full = keep_epochs(full, run_folder_of(target))
        prepared, full = open_training_data(source, full, asked.overrides, on_progress=on_progress)
        if not find_ranks().is_first:  # another process writes the model
            target = None
        tagger = train_prepared(prepared, chosen, full, options, target)
        check_learned(tagger, prepared, full.training.metric)
        return tagger
