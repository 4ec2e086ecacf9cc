"""`setrnn data`: inspect, convert, split and prepare data, and choose what to tag next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

import setrnn
from setrnn.cli.options import (
    ConfigFile,
    Data,
    Device,
    JsonFile,
    Model,
    Reading,
    Rule,
    Settings,
    TreeReading,
    Unlabelled,
    Valid,
    argument,
    option,
)
from setrnn.cli.progress import load_model, terminal_progress, watch
from setrnn.cli.tables import prepared_table, statistics_tables
from setrnn.cli.terminal import escape_controls, note, show, stdout, write_json
from setrnn.data.disk import check_file_place
from setrnn.data.example import Example
from setrnn.data.hierarchy import describe_fit
from setrnn.data.prepared import Prepared
from setrnn.data.read import BadRows, Dataset, write_examples, write_folder
from setrnn.data.read.label_files import save_label_map
from setrnn.data.read.lines import has_mark
from setrnn.data.read.write import WRITERS
from setrnn.data.splits import cut_train
from setrnn.data.statistics import dataset_statistics
from setrnn.data.text.notes import describe_cut_documents
from setrnn.errors import ConfigError, DataError
from setrnn.progress import OnProgress
from setrnn.tagging.rows import check_separator

data = typer.Typer(
    help="Inspect, convert, split and prepare data; choose what to tag.", no_args_is_help=True
)


@data.command()
def info(
    data: Data,
    reading: TreeReading,
    json: JsonFile = None,
    write_label_map: Annotated[
        Path | None,
        option(
            "Write the likely twins among the labels to this CSV file: a start for --label-map.",
            "FILE",
        ),
    ] = None,
) -> None:
    """Show the statistics of data, and what to correct before training.

    Of a prepared folder, every file is checked for damage.
    """
    source = reading.source(data)
    if source.prepared_folder is not None:
        _show_prepared(source.prepared_folder, json)
        return
    dataset = source.open()
    tree, label_sets = source.options.hierarchy, list[tuple[str, ...]]()
    if tree is not None:
        dataset.require("train")
    bad_rows = BadRows(source.on_bad_row)
    with terminal_progress() as on_progress:
        streams = _watch_all(dataset, bad_rows, on_progress)
        if tree is not None:
            streams["train"] = _keep_labels(streams["train"], label_sets)
        statistics = dataset_statistics(streams)
    if json is not None:
        language = statistics.language.language
        write_json(json, {"data": dataset.name, **asdict(statistics), "language": language})
    stdout.print(statistics_tables(statistics))
    for line in [] if tree is None else describe_fit(tree, label_sets):
        show(line)
    note(f"Language: {statistics.language.describe()}")
    bad_rows.report()
    if write_label_map is not None:
        save_label_map(statistics.twins, write_label_map)
        note(f"Wrote {write_label_map}: check each row before you use it.")


def _show_prepared(folder: Path, json: Path | None) -> None:
    """Check every file of a prepared folder, then show its numbers."""
    prepared = Prepared(folder)
    prepared.check()
    if json is not None:
        write_json(json, {"data": prepared.name, **prepared.description})
    stdout.print(prepared_table(prepared))
    if prepared.language_note:
        note(f"Language: {prepared.language_note}")
    files = prepared.description["files"].values()
    note(
        f"{len(prepared.labels):,} labels, {prepared.encoder.n_tokens:,} different words and "
        f"features. All {len(files)} files ({sum(file['bytes'] for file in files) / 1e6:,.1f} MB) "
        "are as they were written."
    )
    if cut := describe_cut_documents(prepared.n_windows, prepared.text_settings):
        note(cut)


@data.command()
def convert(
    data: Data,
    out: Annotated[
        Path,
        argument(
            "OUT",
            "A .jsonl, .jsonl.gz or .parquet file, or .json for tasks of Label Studio; or a "
            "folder, for several parts.",
        ),
    ],
    reading: TreeReading,
    to: Annotated[str, option("The format of the files in a folder.")] = ".jsonl",
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
    with terminal_progress() as on_progress:
        streams = _watch_all(dataset, bad_rows, on_progress)
        if is_file:
            write_examples(next(iter(streams.values())), out)
        else:
            write_folder(streams, out, f".{to.removeprefix('.')}")
    note(f"Wrote {out}")
    bad_rows.report()


@data.command()
def split(
    data: Data,
    out: Annotated[Path, argument("OUT", "The folder to write.")],
    reading: Reading,
    valid: Annotated[float, option("The share for valid; 0 for none.")] = 0.1,
    test: Annotated[float, option("The share for test; 0 for none.")] = 0.1,
    seed: Annotated[int, option("The same seed gives the same parts.")] = 0,
    to: Annotated[str, option("The format of the files.")] = ".jsonl",
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
        kept_by = f"--{taken[0]} 0"
        raise DataError(f"{source} has a '{taken[0]}' part already: keep it with {kept_by}.")
    bad_rows = BadRows(source.on_bad_row)
    with terminal_progress() as on_progress:
        streams = _watch_all(cut_train(dataset, shares, seed), bad_rows, on_progress)
        n_documents = write_folder(streams, out, f".{to.removeprefix('.')}")
    sizes = ", ".join(f"{name} {n_documents[name]:,}" for name in shares)
    note(f"Wrote {out}: {sizes}" + "".join(f"; {name} unchanged" for name in kept))
    bad_rows.report()


@data.command()
def prepare(
    data: Data,
    reading: TreeReading,
    out: Annotated[Path, option("The folder in which the prepared folder is made.")] = Path(
        "prepared"
    ),
    vectors: Annotated[
        str | None,
        option(
            "Word vectors: ppmi or word2vec to learn them, none, or a text file of word2vec or "
            "GloVe.",
            default="ppmi",
        ),
    ] = None,
    valid: Valid = None,
    unlabelled: Unlabelled = None,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Turn data into a memory-mapped folder for training, and print its path."""
    overrides = [*(settings or []), *([f"vectors.source={vectors}"] if vectors else [])]
    source = replace(reading.source(data, valid), unlabelled=tuple(unlabelled or ()))
    with terminal_progress() as on_progress:
        prepared = setrnn.prepare(
            source,
            out=out,
            config=config,
            settings=overrides,
            vectors=True,
            on_progress=on_progress,
        )
    place = str(prepared.folder)  # for scripts as it is; on a terminal without control characters
    typer.echo(escape_controls(place) if stdout.is_terminal else place)


@data.command()
def choose(
    model: Model,
    pool: Annotated[
        list[str],
        argument(
            "POOL",
            "The documents to choose from; they need no labels, and labels are not used. Files, or "
            "a folder.",
        ),
    ],
    out: Annotated[
        Path, option("The file to write: .csv, .parquet, or JSON Lines for any other name.")
    ],
    reading: Reading,
    n: Annotated[int, option("How many documents to choose.", "N", "--n", min=1)] = 200,
    split: Annotated[
        str | None, option("The part of POOL to read.", default="train, or the only one")
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
    mark = False
    if source.prepared_folder is None:
        dataset = source.open()
        refuse_own_input(dataset, out)
        mark = any(has_mark(file) for part in dataset.splits.values() for file in part.files)
    tagger = load_model(model, device)
    if out.suffix.lower() == ".csv":
        check_separator(tagger.labels.names, reading.label_separator)
    with terminal_progress() as on_progress:
        chosen = setrnn.choose(tagger, source, n, split=split, rule=rule, on_progress=on_progress)
    setrnn.write_chosen(chosen, out, reading.id_field, reading.label_separator, mark=mark)
    note(f"Wrote {out}: {len(chosen):,} documents")


def refuse_own_input(dataset: Dataset, out: Path) -> None:
    """Raise if the output is one of the inputs."""
    files = (file for split in dataset.splits.values() for file in split.files)
    if out.is_file() and any(file.exists() and out.samefile(file) for file in files):
        raise DataError(f"{out} is the input itself. Name another file to write.")


def _watch_all(
    dataset: Dataset, bad_rows: BadRows, on_progress: OnProgress
) -> dict[str, Iterator[Example]]:
    """Return the documents of each split, which show their progress."""
    return {
        name: watch(split.read(bad_rows), name, on_progress)
        for name, split in dataset.splits.items()
    }


def _keep_labels(
    examples: Iterator[Example], label_sets: list[tuple[str, ...]]
) -> Iterator[Example]:
    """Yield documents, and keep their labels."""
    for example in examples:
        label_sets.append(example.labels)
        yield example
