"""`setrnn data`: look at data, convert it, split it, prepare it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from setrnn.cli.console import (
    documents_progress,
    note,
    shared_progress,
    stdout,
    warn,
    write_json,
)
from setrnn.cli.options import ConfigFile, Data, JsonFile, Reading, SetOption, with_reading
from setrnn.errors import ConfigError, DataError

if TYPE_CHECKING:
    from setrnn.data.cache import Source
    from setrnn.data.example import Example
    from setrnn.data.formats import BadRows, Dataset

app = typer.Typer(help="Look at data, convert it, split it, prepare it.", no_args_is_help=True)

FORMATS = (".jsonl", ".jsonl.gz", ".parquet")


@app.command()
@with_reading
def info(data: Data, reading: Reading, json: JsonFile = None) -> None:
    """Show what one must know before training."""
    from setrnn.data.statistics import dataset_statistics
    from setrnn.data.statistics_table import render

    source = reading.source(data)
    dataset = source.open()
    bad_rows = _bad_rows(source)
    with documents_progress() as advance:
        streams = {name: _watched(dataset, name, bad_rows, advance) for name in dataset.splits}
        statistics = dataset_statistics(streams)
    if json is not None:
        write_json(json, {"data": dataset.name, **statistics.as_dict()})
    stdout.print(render(statistics))
    report_skipped(bad_rows)


@app.command()
@with_reading
def convert(
    data: Data,
    out: Annotated[
        Path,
        typer.Argument(
            help="A .jsonl, .jsonl.gz or .parquet file; or a folder, for several parts."
        ),
    ],
    reading: Reading,
    to: Annotated[str, typer.Option(help="The format of the files of a folder.")] = ".jsonl",
) -> None:
    """Convert any format to JSON Lines or Parquet."""
    from setrnn.data.folders import whole_folder
    from setrnn.data.formats import write_examples

    refuse_own_input(data, out)
    if out.suffix and not out.name.endswith(FORMATS):
        raise ConfigError(f"{out} must end in {', '.join(FORMATS)}, or be a folder.")
    source = reading.source(data)
    dataset = source.open()
    bad_rows = _bad_rows(source)
    with documents_progress() as advance:
        if out.name.endswith(FORMATS):
            if len(dataset.splits) > 1:
                raise DataError(
                    f"{data} has {len(dataset.splits)} parts ({', '.join(dataset.splits)}): "
                    "name a folder to write them to."
                )
            (name,) = dataset.splits
            write_examples(_watched(dataset, name, bad_rows, advance), out)
        else:
            suffix = _suffix(to)
            _refuse_existing(out)
            with whole_folder(out) as folder:
                for name in dataset.splits:
                    stream = _watched(dataset, name, bad_rows, advance)
                    write_examples(stream, folder / f"{name}{suffix}")
    note(f"Wrote {out}")
    report_skipped(bad_rows)


@app.command()
@with_reading
def split(
    data: Data,
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    reading: Reading,
    valid: Annotated[float, typer.Option(help="The share of documents for valid.")] = 0.1,
    test: Annotated[float, typer.Option(help="The share of documents for test; 0 for none.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Repeats the cut.")] = 0,
    to: Annotated[str, typer.Option(help="The format of the files.")] = ".jsonl",
) -> None:
    """Cut data into train, valid and test, so that rare labels reach every part.

    Iterative stratification; documents of the same text stay together. Parts that DATA has
    besides train are copied as they are.
    """
    from setrnn.data.cut import cut
    from setrnn.data.folders import whole_folder
    from setrnn.data.formats import write_examples

    source = reading.source(data)
    dataset = source.open()
    shares = {"train": 1 - valid - test, "valid": valid, "test": test}
    shares = {name: share for name, share in shares.items() if share != 0}
    kept = [name for name in dataset.splits if name != "train"]
    if taken := [name for name in kept if name in shares]:
        option = f"--{taken[0]} 0"
        raise DataError(f"{data} has a '{taken[0]}' part already: keep it with {option}.")
    suffix = _suffix(to)
    _refuse_existing(out)
    bad_rows = _bad_rows(source)
    with documents_progress() as advance, whole_folder(out) as folder:
        parts = cut(_watched(dataset, "train", bad_rows, advance), list(shares.values()), seed)
        for index, name in enumerate(shares):
            documents = dataset.splits["train"].read(_bad_rows(source))
            chosen = (each for each, part in zip(documents, parts, strict=True) if part == index)
            write_examples(chosen, folder / f"{name}{suffix}")
        for name in kept:
            write_examples(_watched(dataset, name, bad_rows, advance), folder / f"{name}{suffix}")
    sizes = ", ".join(f"{name} {parts.count(index):,}" for index, name in enumerate(shares))
    note(f"Wrote {out}: {sizes}" + "".join(f"; {name} as it was" for name in kept))
    report_skipped(bad_rows)


@app.command()
@with_reading
def prepare(
    data: Data,
    reading: Reading,
    out: Annotated[
        Path, typer.Option(help="The folder in which the prepared folder is made.")
    ] = Path("prepared"),
    vectors: Annotated[
        str | None,
        typer.Option(help="Word vectors: word2vec, none, or a word2vec/GloVe file."),
    ] = None,
    valid: Annotated[Path | None, typer.Option(help="A file that becomes the valid part.")] = None,
    config: ConfigFile = None,
    settings: SetOption = None,
) -> None:
    """Turn data into a memory-mapped folder that training reads."""
    from setrnn.config import WORDS, load_config
    from setrnn.data.cache import open_prepared

    overrides = [*(settings or []), *([f"vectors.source={vectors}"] if vectors else [])]
    chosen = load_config(file=config, overrides=overrides)
    with documents_progress() as advance:
        prepared = open_prepared(reading.source(data, valid), chosen.text, out, advance)
    if chosen.vectors.source != "none" and chosen.text.tokenizer == WORDS:
        from setrnn.data.vectors import word_vectors

        with shared_progress() as show:
            word_vectors(prepared, chosen.vectors, show)
    report_skipped_count(prepared.n_skipped_rows)
    typer.echo(prepared.folder)


def refuse_own_input(data: str, out: Path) -> None:
    """Refuse to write over what is read."""
    if out.exists() and Path(data).exists() and out.samefile(data):
        raise DataError(f"{out} is the input itself. Name another file to write.")


def report_skipped(bad_rows: BadRows) -> None:
    """Say how many rows were passed over, and show the first ones."""
    report_skipped_count(bad_rows.n_skipped)
    for message in bad_rows.first:
        note(f"  {message}")


def report_skipped_count(n_skipped: int) -> None:
    """Say how many rows were passed over, if any were."""
    if n_skipped:
        warn(f"{n_skipped:,} rows could not be read and were skipped.")


def _bad_rows(source: Source) -> BadRows:
    from setrnn.data.formats import BadRows

    return BadRows(source.on_bad_row)


def _watched(
    dataset: Dataset, name: str, bad_rows: BadRows, advance: Callable[[str, int], None]
) -> Iterator[Example]:
    """Stream a split and count its documents on the screen."""
    n_waiting = 0
    for example in dataset.require(name).read(bad_rows):
        yield example
        n_waiting += 1
        if n_waiting == 1000:
            advance(name, n_waiting)
            n_waiting = 0
    advance(name, n_waiting)


def _suffix(name: str) -> str:
    suffix = name if name.startswith(".") else f".{name}"
    if suffix not in FORMATS:
        raise ConfigError(f"--to is one of {', '.join(FORMATS)}, got '{name}'.")
    return suffix


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise DataError(f"{out} exists already. Remove it, or name another folder.")
