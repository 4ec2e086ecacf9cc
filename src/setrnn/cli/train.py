"""Train a system, with progress, and say how to go on when it is stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setrnn.cli.calibrate import calibrated_on_valid
from setrnn.cli.console import (
    counted_progress,
    note,
    scores_table,
    stdout,
    warn,
)
from setrnn.cli.opening import opened_data
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    Preset,
    Reading,
    SetOption,
    with_reading,
)
from setrnn.errors import ConfigError, StoppedError

if TYPE_CHECKING:
    from setrnn.config import ClassicalSettings, Config, TrainingSettings
    from setrnn.data.prepared import Prepared
    from setrnn.methods import Trained
    from setrnn.tagging.tagger import Tagger

FEW_STEPS = 300  # with fewer, the default recipe has hardly begun to learn


@with_reading
def train(
    data: Data,
    method: Annotated[str, typer.Option(help="A system; `setrnn methods` lists them.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: Reading,
    valid: Annotated[
        Path | None, typer.Option(help="A file that becomes the valid part.", show_default=False)
    ] = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    settings: SetOption = None,
    device: Device = "auto",
    seed: Annotated[int | None, typer.Option(help="Repeats a run.", show_default="0")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run kept in OUT.run.")
    ] = False,
) -> None:
    """Train a system and write its model folder; a recurrent one keeps its run in OUT.run."""
    from setrnn.config import load_config
    from setrnn.data.model_folder import refuse_other_folder
    from setrnn.methods import find_method
    from setrnn.tagging.evaluation import evaluate_prepared

    _check_method(method, device, resume)
    refuse_other_folder(out)
    overrides = [*(settings or []), *([f"seed={seed}"] if seed is not None else [])]
    chosen = load_config(preset, config, overrides)
    find_method(method).check(chosen)
    prepared, chosen = opened_data(reading.source(data, valid), chosen, overrides)
    with _way_to_go_on(method, out):
        tagger = train_tagger(prepared, method, chosen, device, out, resume)
        tagger = calibrated_on_valid(tagger, prepared)
        tagger.save(out)
        if prepared.description["n_documents"].get("valid"):
            evaluation = evaluate_prepared(tagger, prepared, "valid")
            stdout.print(scores_table("On the valid part", {method: evaluation.as_dict()}))
    note(f"Wrote {out}")


def _check_method(name: str, device: str, resume: bool) -> None:
    from setrnn.methods import find_method

    if find_method(name).is_neural:
        from setrnn.model.devices import find_device

        find_device(device)  # before the data is read
    elif resume:
        raise ConfigError(f"'{name}' trains in one go and keeps no run. Leave out --resume.")


@contextmanager
def _way_to_go_on(method: str, out: Path) -> Iterator[None]:
    """After a Ctrl-C that stopped at once, say how to go on."""
    from setrnn.methods import find_method

    try:
        yield
    except KeyboardInterrupt:
        if not find_method(method).is_neural:
            raise
        from setrnn.training.run_folder import has_run, run_folder_of

        is_saved = has_run(run_folder_of(out))
        way = "Go on with --resume." if is_saved else "Nothing was trained yet: start again."
        raise StoppedError(f"Stopped. {way}") from None


def train_tagger(
    prepared: Prepared,
    method: str,
    config: Config,
    device: str = "auto",
    out: Path | None = None,
    resume: bool = False,
) -> Tagger:
    """Train with a progress bar; what a recurrent system needs to go on is kept beside `out`."""
    from setrnn.methods import find_method
    from setrnn.tagging.tagger import Tagger

    start = time.perf_counter()
    if find_method(method).is_neural:
        trained = _train_network(prepared, method, config, device, out, resume)
    else:
        if config.classical.tune:
            config = replace(config, classical=_tuned(prepared, method, config))
        trained = _train_classical(prepared, method, config)
    notes = {
        "data": prepared.name,
        "n_documents": prepared.description["n_documents"]["train"],
        "training_seconds": round(time.perf_counter() - start, 2),
        **trained.notes,
    }
    return Tagger.trained_on(prepared, method, config, trained.system, notes)


def _train_classical(prepared: Prepared, method: str, config: Config) -> Trained:
    from setrnn.methods import find_method
    from setrnn.training.options import TrainOptions

    with counted_progress(f"training {method}: labels", len(prepared.labels)) as advance:
        return find_method(method).train(prepared, config, TrainOptions(on_labels=advance))


def _warn_of_few_steps(n_documents: int, settings: TrainingSettings) -> None:
    n_steps = -(-n_documents // settings.batch_size) * settings.epochs
    if n_steps < FEW_STEPS:
        warn(
            f"{n_documents:,} documents are only {n_steps} steps of training, and it may learn "
            f"little. Lower training.batch_size (now {settings.batch_size}) or raise "
            f"training.epochs (now {settings.epochs})."
        )


def _train_network(
    prepared: Prepared, method: str, config: Config, device: str, out: Path | None, resume: bool
) -> Trained:
    from setrnn.cli.training_display import training_display
    from setrnn.methods import find_method
    from setrnn.training.options import TrainOptions
    from setrnn.training.run_folder import has_run, run_folder_of

    run = None if out is None else run_folder_of(out)
    _warn_of_few_steps(prepared.description["n_documents"]["train"], config.training)
    if resume and run is not None and not has_run(run):
        note(f"{run} has no checkpoint yet: training starts anew.")
    if not prepared.description["n_documents"].get("valid"):
        note(
            "There is no valid part: the last epoch is taken, training.metric and "
            "training.patience play no role. Add one with --valid FILE."
        )
    with training_display() as display:
        options = TrainOptions(
            device=device,
            run_folder=run,
            resume=resume,
            on_progress=display.training,
            on_vectors=display.vectors,
        )
        trained = find_method(method).train(prepared, config, options)
    epochs, best = len(trained.notes["epochs"]), trained.notes["best_epoch"]
    if epochs < config.training.epochs:
        note(f"Stopped early: no better {config.training.metric} since epoch {best}.")
    if best:
        note(f"The model is that of epoch {best}, the best by {config.training.metric}.")
    return trained


def _tuned(prepared: Prepared, method: str, config: Config) -> ClassicalSettings:
    from setrnn.systems.classical import BASELINES
    from setrnn.systems.classical.tuning import GRID, tune_penalties

    if "valid" not in prepared.splits:
        raise ConfigError(
            "classical.tune needs a valid part. Add one with --valid FILE, "
            "or cut one with: setrnn data split"
        )
    with counted_progress("choosing penalties on valid", len(GRID)) as advance:
        chosen = tune_penalties(
            BASELINES[method], prepared, config.classical, lambda l1, l2, scores: advance(1)
        )
    note(f"Chosen on valid: classical.l1={chosen.l1} classical.l2={chosen.l2}")
    return chosen
