"""`setrnn train`: train a system, with progress, and say how to resume when it is stopped."""

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
from setrnn.errors import StoppedError


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
    seed: Annotated[
        int | None, typer.Option(help="The seed; the same seed repeats a run.", show_default="0")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run kept in OUT.run.")
    ] = False,
) -> None:
    """Train a system and write its model folder; a network keeps its checkpoints in OUT.run."""
    from setrnn.cli.progress import terminal_progress
    from setrnn.config import load_config
    from setrnn.data.model_folder import refuse_other_folder
    from setrnn.methods import find_method
    from setrnn.tagging.evaluation import evaluate
    from setrnn.tagging.train import check_training, open_training_data, train_prepared
    from setrnn.training.options import TrainOptions

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
    """After a Ctrl-C that stopped at once, say how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        if not is_network:
            raise
        from setrnn.training.run_folder import has_run, run_folder_of

        is_saved = has_run(run_folder_of(out))
        way = "Resume with --resume." if is_saved else "Nothing was trained yet: start again."
        raise StoppedError(f"Stopped. {way}") from None
