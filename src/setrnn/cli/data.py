"""`setrnn data`: inspect, convert, split and prepare data, and choose what to tag next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

import setrnn
from setrnn.cli.console import note, stdout, warn, write_json
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    JsonFile,
    Model,
    Reading,
    Rule,
    SetOption,
    TreeReading,
    Unlabelled,
    Valid,
    with_reading,
)
from setrnn.cli.progress import documents_progress, load_model, terminal_progress
from setrnn.cli.statistics_tables import show_statistics
from setrnn.cli.terminal import escape_controls
from setrnn.config import TextSettings
from setrnn.data.disk import check_file_place
from setrnn.data.example import Example
from setrnn.data.hierarchy import describe_labels
from setrnn.data.prepared import Prepared
from setrnn.data.read import BadRows, Dataset, write_examples, write_folder
from setrnn.data.read.label_files import save_label_map
from setrnn.data.read.lines import has_mark
from setrnn.data.read.write import WRITERS
from setrnn.data.splits import cut_train
from setrnn.data.statistics import dataset_statistics
from setrnn.data.text.languages import detect_language, keep_some_texts
from setrnn.data.text.notes import describe_cut_documents
from setrnn.errors import ConfigError, DataError
from setrnn.tagging.rows import check_separator

app = typer.Typer(
    help="Inspect, convert, split and prepare data; choose what to tag.", no_args_is_help=True
)


@app.command()
@with_reading
def info(
    data: Data,
    reading: TreeReading,
    json: JsonFile = None,
    write_label_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the likely twins among the labels to this CSV file: a start for "
            "--label-map.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show the statistics of data, and what to correct before training.

    Of a prepared folder, every file is checked for damage.
    """
    source = reading.source(data)
    if source.prepared_folder is not None:
        show_prepared(source.prepared_folder, json)
        return
    dataset = source.open()
    if source.options.hierarchy is not None:
        dataset.require("train")
    bad_rows = BadRows(source.on_bad_row)
    tree, label_sets = source.options.hierarchy, list[tuple[str, ...]]()
    texts: list[str] = []
    with documents_progress() as advance:
        streams = _watch_all(dataset, bad_rows, advance)
        first = "train" if "train" in streams else next(iter(streams))
        streams[first] = keep_some_texts(streams[first], texts)
        if tree is not None:
            streams["train"] = _keep_labels(streams["train"], label_sets)
        statistics = dataset_statistics(streams)
    language = detect_language(texts)
    if json is not None:
        values = {"data": dataset.name, "language": language.language, **asdict(statistics)}
        write_json(json, values)
    stdout.print(show_statistics(statistics))
    n_windows = {name: split.n_windows for name, split in statistics.splits.items()}
    if cut := describe_cut_documents(n_windows, TextSettings()):
        note(cut)
    for line in [] if tree is None else describe_labels(tree, label_sets):
        stdout.print(line, markup=False, highlight=False, soft_wrap=True)
    note(f"Language: {language.describe()}")
    report_skipped(bad_rows)
    if write_label_map is not None:
        save_label_map(statistics.twins, write_label_map)
        note(f"Wrote {write_label_map}: check each row before you use it.")


@app.command()
@with_reading
def convert(
    data: Data,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="A .jsonl, .jsonl.gz or .parquet file, or .json for tasks of Label Studio; or a "
            "folder, for several parts.",
        ),
    ],
    reading: TreeReading,
    to: Annotated[str, typer.Option(help="The format of the files in a folder.")] = ".jsonl",
) -> None:
    """Convert any format to JSON Lines, Parquet or tasks of Label Studio."""
    is_file = out.name.endswith(tuple(WRITERS))
    if out.suffix and not is_file:
        raise ConfigError(f"{out} must end in {', '.join(WRITERS)}, or be a folder.")
    source = reading.source(data)
    dataset = source.open()
    refuse_own_input(dataset, out)
    bad_rows = BadRows(source.on_bad_row)
    if is_file and len(dataset.splits) > 1:
        raise DataError(
            f"{source} has {len(dataset.splits)} parts ({', '.join(dataset.splits)}): "
            "name a folder to write them to."
        )
    with documents_progress() as advance:
        streams = _watch_all(dataset, bad_rows, advance)
        if is_file:
            write_examples(next(iter(streams.values())), out)
        else:
            write_folder(streams, out, _with_dot(to))
    note(f"Wrote {out}")
    report_skipped(bad_rows)


@app.command()
@with_reading
def split(
    data: Data,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.")],
    reading: Reading,
    valid: Annotated[float, typer.Option(help="The share for valid; 0 for none.")] = 0.1,
    test: Annotated[float, typer.Option(help="The share for test; 0 for none.")] = 0.1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same parts.")] = 0,
    to: Annotated[str, typer.Option(help="The format of the files.")] = ".jsonl",
) -> None:
    """Cut data into train, valid and test, so that rare labels reach every part.

    Uses iterative stratification; documents with the same text stay together. Parts of DATA
    other than train are copied unchanged.
    """
    source = reading.source(data)
    dataset = source.open()
    shares = {"train": 1 - valid - test, "valid": valid, "test": test}
    shares = {name: share for name, share in shares.items() if share != 0}
    kept = [name for name in dataset.splits if name != "train"]
    if taken := [name for name in kept if name in shares]:
        option = f"--{taken[0]} 0"
        raise DataError(f"{source} has a '{taken[0]}' part already: keep it with {option}.")
    bad_rows = BadRows(source.on_bad_row)
    with documents_progress() as advance:
        streams = _watch_all(cut_train(dataset, shares, seed), bad_rows, advance)
        n_documents = write_folder(streams, out, _with_dot(to))
    sizes = ", ".join(f"{name} {n_documents[name]:,}" for name in shares)
    note(f"Wrote {out}: {sizes}" + "".join(f"; {name} unchanged" for name in kept))
    report_skipped(bad_rows)


@app.command("prepare")
@with_reading
def prepare_folder(
    data: Data,
    reading: TreeReading,
    out: Annotated[
        Path, typer.Option(help="The folder in which the prepared folder is made.")
    ] = Path("prepared"),
    vectors: Annotated[
        str | None,
        typer.Option(
            help="Word vectors: ppmi or word2vec to learn them, none, or a text file of word2vec "
            "or GloVe.",
            show_default="ppmi",
        ),
    ] = None,
    valid: Valid = None,
    unlabelled: Unlabelled = None,
    config: ConfigFile = None,
    settings: SetOption = None,
) -> None:
    """Turn data into a memory-mapped folder for training, and print its path."""
    overrides = [*(settings or []), *([f"vectors.source={vectors}"] if vectors else [])]
    source = replace(reading.source(data, valid), unlabelled=tuple(unlabelled or ()))
    with terminal_progress() as show:
        prepared = setrnn.prepare(
            source,
            out=out,
            config=config,
            settings=overrides,
            vectors=True,
            on_progress=show,
        )
    place = str(prepared.folder)  # for scripts as it is; on a terminal without control characters
    typer.echo(escape_controls(place) if stdout.is_terminal else place)


@app.command()
@with_reading
def choose(
    model: Model,
    pool: Annotated[
        list[str],
        typer.Argument(
            metavar="POOL",
            help="The documents to choose from; they need no labels, and labels are not used. "
            "Files, or a folder.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="The file to write: .csv, .parquet, or JSON Lines for any other name."),
    ],
    reading: Reading,
    n: Annotated[
        int, typer.Option("--n", metavar="N", min=1, help="How many documents to choose.")
    ] = 200,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", help="The part of POOL to read.", show_default="train, or the only one"
        ),
    ] = None,
    rule: Rule = None,
    device: Device = "auto",
) -> None:
    """Choose the documents to tag next: uncertain ones that differ from each other.

    Writes the fields of each document, the labels that MODEL proposes, their probability, and the
    labels it is least sure about. The first documents matter most. Documents that MODEL was trained
    on, repeated texts and empty ones are left out.
    """
    check_file_place(out)
    source = reading.source(pool, require_labels=False)
    files: list[Path] = []
    if source.prepared_folder is None:
        dataset = source.open()
        refuse_own_input(dataset, out)
        files = [file for part in dataset.splits.values() for file in part.files]
    tagger = load_model(model, device)
    if out.suffix.lower() == ".csv":
        check_separator(tagger.labels.names, reading.label_separator)
    with terminal_progress() as show:
        chosen = setrnn.choose(tagger, source, n, split=split, rule=rule, on_progress=show)
    mark = any(map(has_mark, files))
    setrnn.write_chosen(chosen, out, reading.id_field, reading.label_separator, mark=mark)
    note(f"Wrote {out}: {len(chosen):,} documents")


def show_prepared(folder: Path, json: Path | None = None) -> None:
    """Check every file of a prepared folder, then show its numbers."""
    prepared = Prepared(folder)
    prepared.check()
    if json is not None:
        write_json(json, {"data": prepared.name, **prepared.description})
    table = Table(title=escape(prepared.name), title_justify="left")
    table.add_column("")
    for name in prepared.splits:
        table.add_column(escape(name), justify="right")
    splits = [prepared.split(name) for name in prepared.splits]
    table.add_row("documents", *(f"{len(split):,}" for split in splits))
    if any(split.unknown is not None for split in splits):
        n_incomplete = (int((~split.is_complete).sum()) for split in splits)
        table.add_row("documents with unknown labels", *(f"{n:,}" for n in n_incomplete))
    for row, parts in (
        ("labels per document", [split.labels for split in splits]),
        ("words per document", [split.tokens for split in splits]),
    ):
        table.add_row(row, *(f"{len(each.values) / max(len(each), 1):.1f}" for each in parts))
    stdout.print(table)
    if prepared.language_note:
        note(f"Language: {prepared.language_note}")
    seals = prepared.description["files"].values()
    note(
        f"{len(prepared.labels):,} labels, {prepared.encoder.n_tokens:,} different words and "
        f"features. All {len(seals)} files ({sum(seal['bytes'] for seal in seals) / 1e6:,.1f} MB) "
        "are as they were written."
    )
    if cut := describe_cut_documents(prepared.n_windows, prepared.text_settings):
        note(cut)


def refuse_own_input(dataset: Dataset, out: Path) -> None:
    """Raise if the output is one of the inputs."""
    files = (file for split in dataset.splits.values() for file in split.files)
    if out.is_file() and any(file.exists() and out.samefile(file) for file in files):
        raise DataError(f"{out} is the input itself. Name another file to write.")


def report_skipped(bad_rows: BadRows) -> None:
    """Print the number of skipped rows, the first messages, and what else there is to know."""
    if bad_rows.n_skipped:
        warn(f"{bad_rows.n_skipped:,} rows could not be read and were skipped.")
    for message in bad_rows.first:
        note(f"  {message}")
    for message in bad_rows.notes:
        note(message)


def _watch_all(
    dataset: Dataset, bad_rows: BadRows, advance: Callable[[str, int], None]
) -> dict[str, Iterator[Example]]:
    """Return a stream per split that shows its progress."""
    return {name: _watch(dataset, name, bad_rows, advance) for name in dataset.splits}


def _watch(
    dataset: Dataset, name: str, bad_rows: BadRows, advance: Callable[[str, int], None]
) -> Iterator[Example]:
    n_waiting = 0
    for example in dataset.require(name).read(bad_rows):
        yield example
        n_waiting += 1
        if n_waiting == 1000:
            advance(name, n_waiting)
            n_waiting = 0
    advance(name, n_waiting)


def _keep_labels(
    examples: Iterator[Example], label_sets: list[tuple[str, ...]]
) -> Iterator[Example]:
    """Yield documents, and keep their labels."""
    for example in examples:
        label_sets.append(example.labels)
        yield example


def _with_dot(suffix: str) -> str:
    return suffix if suffix.startswith(".") else f".{suffix}"
