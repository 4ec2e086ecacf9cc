"""`setrnn predict --out FOLDER/`: tag files of any size, by several workers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

import setrnn
from setrnn.cli.console import note, warn
from setrnn.cli.progress import terminal_progress
from setrnn.data.cache import Source
from setrnn.errors import ConfigError

GROUP = "Options of --out FOLDER/"


def _option(**settings: Any) -> Any:  # noqa: ANN401 (typer has no narrower type)
    return typer.Option(rich_help_panel=GROUP, show_default=False, **settings)


@dataclass(frozen=True)
class FolderOptions:
    """How to write a folder of shards, as given on the command line."""

    workers: Annotated[
        int | None,
        _option(metavar="N", help="The number of workers. Default: one per core, or per GPU."),
    ] = None
    ray: Annotated[
        str | None,
        _option(
            metavar="ADDRESS",
            help="Run the workers on a Ray cluster: auto for that of this machine, local to start "
            "one, or HOST:PORT. All nodes must see MODEL, INPUT and the folder.",
        ),
    ] = None
    gpus_per_worker: Annotated[
        float | None,
        _option(metavar="N", help="The GPUs of each worker on a Ray cluster, such as 0.5."),
    ] = None
    format_out: Annotated[
        str | None,
        _option(metavar="jsonl|csv|parquet", help="The format of the shards. Default: jsonl."),
    ] = None
    shard_rows: Annotated[
        int | None, _option(metavar="N", help="The rows of each shard. Default: 50,000.")
    ] = None
    shard_minutes: Annotated[
        float | None,
        _option(
            metavar="N",
            help="A shard that takes longer is given to another worker. Default: 60.",
        ),
    ] = None

    def refuse(self) -> None:
        """Raise ConfigError if one of them is given without a folder."""
        for each in fields(self):
            if getattr(self, each.name) is not None:
                flag = each.name.replace("_", "-")
                raise ConfigError(f"--{flag} needs a folder to write: --out FOLDER/, with the /.")


def predict_into_folder(
    model: str,
    source: Source,
    out: str,
    options: FolderOptions,
    **how: Any,  # noqa: ANN401 (those of predict_files)
) -> None:
    """Tag files into a folder of shards, and say what was done."""
    crew = {
        name: getattr(options, name)
        for name in ("workers", "ray", "gpus_per_worker", "shard_minutes")
        if getattr(options, name) is not None
    }
    for name in ("format_out", "shard_rows"):
        if getattr(options, name) is not None:
            how[name] = getattr(options, name)
    with terminal_progress() as show:
        done = setrnn.predict_files(
            model, source, out, crew=setrnn.Crew(**crew), on_progress=show, **how
        )
    if done.n_bad:
        warn(f"{done.n_bad:,} rows could not be tagged: see {out}bad.jsonl")
    n_files = len(done.files)
    note(f"Wrote {out}: {done.n_documents:,} documents in {n_files:,} shards, see manifest.json")
