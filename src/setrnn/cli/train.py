"""`setrnn train`: train a system, and explain how to resume after a stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from setrnn.cli.console import note, scores_table, stdout
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    Preset,
    Reading,
    SetOption,
    with_reading,
)
from setrnn.cli.progress import terminal_progress
from setrnn.config import load_config
from setrnn.data.model_folder import refuse_other_folder
from setrnn.errors import StoppedError
from setrnn.methods import find_method
from setrnn.tagging.evaluation import evaluate
from setrnn.tagging.train import check_training, open_training_data, train_prepared
from setrnn.training.run_folder import has_run, run_folder_of
from setrnn.training.start import TrainOptions


@with_reading
def train(
    data: Data,
    method: Annotated[str, typer.Option(help="The system to train; `setrnn methods` lists them.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: Reading,
    valid: Annotated[
        Path | None, typer.Option(help="A file to use as the valid part.", show_default=False)
    ] = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    settings: SetOption = None,
    device: Device = "auto",
    seed: Annotated[
        int | None,
        typer.Option(help="The random seed; the same seed gives the same model.", show_default="0"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in OUT.run from its last checkpoint.")
    ] = False,
) -> None:
    """Train a system and write its model folder.

    A network also keeps its checkpoints and logs in OUT.run.
    """
    chosen = find_method(method)
    overrides = [*(settings or []), *([f"seed={seed}"] if seed is not None else [])]
    full = load_config(preset, config, overrides)
    check_training(chosen, full, device, resume)
    refuse_other_folder(out)
    with terminal_progress() as show, _explain_resuming(chosen.is_network, out):
        prepared, full = open_training_data(
            reading.source(data, valid), full, overrides, on_progress=show
        )
        options = TrainOptions(device, resume=resume, on_progress=show)
        tagger = train_prepared(prepared, chosen, full, options, out)
    if prepared.description["n_documents"].get("valid"):
        evaluation = evaluate(tagger, prepared, split="valid")
        stdout.print(scores_table("On the valid part", {method: evaluation.as_dict()}))
    note(f"Wrote {out}")


@contextmanager
def _explain_resuming(is_network: bool, out: Path) -> Iterator[None]:
    """Explain how to resume when Ctrl-C stops training at once."""
    try:
        yield
    except KeyboardInterrupt:
        if not is_network:
            raise
        is_saved = has_run(run_folder_of(out))
        way = "Resume with --resume." if is_saved else "No checkpoint was written: start again."
        raise StoppedError(f"Stopped. {way}") from None
