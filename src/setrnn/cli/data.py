"""`setrnn data`: inspect, convert, split and prepare data, choose what to tag, doubt labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

import setrnn
from setrnn.cli import options
from setrnn.cli.options import argument, new_file, option, part
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import show_table
from setrnn.cli.terminal import escape_controls, note, show, stdout, warn, write_json
from setrnn.data.example import Example
from setrnn.data.hierarchy import describe_fit
from setrnn.data.prepared import Prepared
from setrnn.data.read import BadRows, Dataset, write_examples, write_folder
from setrnn.data.read.delimited import Dialect, DialectName, find_dialect
from setrnn.data.read.label_files import save_groups, save_label_map
from setrnn.data.read.write import WRITERS
from setrnn.data.source import Source
from setrnn.data.splits import cut_train
from setrnn.data.statistics import DatasetStatistics, SplitStatistics, dataset_statistics
from setrnn.data.text.notes import describe_cut_documents
from setrnn.errors import ConfigError, DataError, count_of, list_some, printable
from setrnn.progress import watch
from setrnn.systems.rules.plausible import propose_groups
from setrnn.tagging.rows import check_table

MOST_LABELS, MOST_TWINS = 8, 12  # rows of the tables of `data info`
MOST_GROUPS, MOST_OF_GROUP = 3, 5  # and labels of each

data = typer.Typer(
    help="Inspect, convert, split and prepare data; choose what to tag, find wrong labels.",
    no_args_is_help=True,
)


@data.command()
def info(
    data: options.Data,
    reading: options.TreeReading,
    json: options.JsonFile = None,
    write_label_map: Annotated[
        Path | None,
        option(
            "Write the labels that are probably spellings of another to this CSV file: a start "
            "for --label-map.",
            "FILE",
        ),
    ] = None,
    write_groups: Annotated[
        Path | None,
        option("Write labels that never meet to this CSV file: a start for --groups.", "FILE"),
    ] = None,
) -> None:
    """Show the statistics of data, and what to correct before training.

    Of a prepared folder, every file is checked for damage.
    """
    source = reading.source(data)
    if source.options.unlabelled_rows == "stop":  # they are counted
        source = replace(source, options=replace(source.options, unlabelled_rows="empty"))
    if source.prepared_folder is not None:
        _show_prepared(source.prepared_folder, json)
        return
    dataset, tree = source.open(), source.options.hierarchy
    fit = []
    if tree is not None:
        train = dataset.require("train").read(BadRows(source.on_bad_row))
        fit = describe_fit(tree, [each.labels for each in train])
    with _documents(source, dataset) as streams:
        statistics = dataset_statistics(streams)
    language = statistics.language
    if json is not None:
        values = {"data": dataset.name, **asdict(statistics), "language": language.language}
        write_json(json, values)
    _show_statistics(statistics)
    part = dataset.require("train" if "train" in dataset.splits else next(iter(dataset.splits)))
    documents = part.read(BadRows(source.on_bad_row))
    groups = propose_groups(each.labels for each in documents if not each.is_incomplete)
    if groups:
        some = [list_some([*group.labels], MOST_OF_GROUP) for group in groups[:MOST_GROUPS]]
        n = count_of(len(groups), "group")
        show(f"{n} of labels that never meet, a start for --groups: {printable('; '.join(some))}.")
    for line in fit:
        show(line)
    note(f"Language: {language.describe()}")
    if write_label_map is not None:
        save_label_map(statistics.twins, write_label_map)
        note(f"Wrote {write_label_map}: check each row before you use it.")
    if write_groups is not None:
        save_groups(groups, write_groups)
        note(f"Wrote {write_groups}: check each group before you use it.")


def _show_prepared(folder: Path, json: Path | None) -> None:
    """Check every file of a prepared folder, then show its numbers."""
    prepared = Prepared(folder)
    prepared.check()
    if json is not None:
        write_json(json, {"data": prepared.name, **prepared.description})
    sizes = prepared.description["n_documents"].items()
    show(f"{prepared.name}: {', '.join(f'{n:,} {name} documents' for name, n in sizes)}")
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


def _show_statistics(statistics: DatasetStatistics) -> None:
    """Print the sizes of the parts, the most and least frequent labels, twins, and warnings.

    The labels are those of train, or of the first part if there is no train.
    """
    show_parts(statistics)
    name = "train" if "train" in statistics.splits else next(iter(statistics.splits), "")
    split = statistics.splits.get(name)
    if split is not None and split.n_documents:
        _show_labels(name, split)
    if twins := [f"{old} for {new}" for old, new in statistics.twins.items()]:
        show(f"Likely twins, a start for --label-map: {printable(list_some(twins, MOST_TWINS))}.")
    for each in statistics.warnings():
        warn(each)


def show_parts(statistics: DatasetStatistics) -> None:
    """Print the sizes of the parts."""
    splits = statistics.splits.values()
    unseen = ("" if s.unseen_share is None else f"{s.unseen_share:.1%}" for s in splits)
    rows = [
        ["documents", *(f"{s.n_documents:,}" for s in splits)],
        ["documents with unknown labels", *(f"{s.n_incomplete:,}" for s in splits)],
        ["labels", *(f"{s.n_labels:,}" for s in splits)],
        ["labels per document", *(f"{s.mean_set_size:.2f}" for s in splits)],
        ["most labels per document", *(f"{s.max_set_size:,}" for s in splits)],
        ["distinct label sets", *(f"{s.n_label_sets:,}" for s in splits)],
        ["label sets not in training", *unseen],
        ["words per document", *(f"{s.lengths.mean:.0f}" for s in splits)],
        ["words, median", *(f"{s.lengths.median:,}" for s in splits)],
        ["words, 95th percentile", *(f"{s.lengths.percentile_95:,}" for s in splits)],
        ["words, most", *(f"{s.lengths.max:,}" for s in splits)],
        ["documents with features", *(f"{s.n_documents_with_features:,}" for s in splits)],
    ]
    shown = (row for row in rows if {*row[1:]} - {"", "0"})
    show_table("Parts", ["", *statistics.splits], shown)


def _show_labels(name: str, split: SplitStatistics) -> None:
    """Print the most and the least frequent labels side by side."""
    labels = [(printable(label), f"{n:,}") for label, n in split.label_frequencies.items()]
    n_shown = min(MOST_LABELS, len(labels))
    rows = ([*most, *least] for most, least in zip(labels[:n_shown], labels[::-1], strict=False))
    columns = ["most frequent", "documents", "least frequent", "documents"]
    show_table(f"Labels, {name}", columns, rows, words=["least frequent"])


@data.command()
def convert(
    data: options.Data,
    out: Annotated[
        Path,
        argument(
            "OUT",
            "A .jsonl, .jsonl.gz or .parquet file, or .json for tasks of Label Studio; or a "
            "folder, for several parts.",
        ),
    ],
    reading: options.TreeReading,
    to: Annotated[str, option("The format of the files in a folder.", "SUFFIX")] = ".jsonl",
) -> None:
    """Convert any format to JSON Lines, Parquet or tasks of Label Studio."""
    is_file = out.name.endswith(tuple(WRITERS))
    if out.suffix and not is_file:
        raise ConfigError(f"{out} must end in {', '.join(WRITERS)}, or be a folder.")
    source = reading.source(data)
    dataset = source.open()
    refuse_own_input(dataset, out)
    if is_file and len(dataset.splits) > 1:
        raise DataError(
            f"{source} has {len(dataset.splits)} parts ({', '.join(dataset.splits)}): "
            "name a folder to write them to."
        )
    with _documents(source, dataset) as streams:
        if is_file:
            write_examples(next(iter(streams.values())), out)
        else:
            write_folder(streams, out, f".{to.removeprefix('.')}")
    note(f"Wrote {out}")


@data.command()
def split(
    data: options.Data,
    out: Annotated[Path, argument("OUT", "The folder to write.")],
    reading: options.Reading,
    valid: Annotated[float, option("The share for valid; 0 for none.", "SHARE")] = 0.1,
    test: Annotated[float, option("The share for test; 0 for none.", "SHARE")] = 0.1,
    seed: Annotated[int, option("The random seed; the same seed gives the same parts.")] = 0,
    to: Annotated[str, option("The format of the files.", "SUFFIX")] = ".jsonl",
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
        raise DataError(f"{source} has a '{taken[0]}' part already: keep it with --{taken[0]} 0.")
    with _documents(source, cut_train(dataset, shares, seed)) as streams:
        n_documents = write_folder(streams, out, f".{to.removeprefix('.')}", source.columns)
    sizes = ", ".join(f"{name} {n:,}" for name, n in n_documents.items())
    note(f"Wrote {out}: {sizes}")


@data.command()
def prepare(
    data: options.Data,
    reading: options.TreeReading,
    out: Annotated[Path, option("Where to make the prepared folder.")] = Path("prepared"),
    valid: options.Valid = None,
    unlabelled: options.Unlabelled = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
) -> None:
    """Write data as a prepared folder, which training opens at once, and print its path."""
    source = replace(reading.source(data, valid), unlabelled=tuple(unlabelled or ()))
    with terminal_progress() as on_progress:
        prepared = setrnn.prepare(
            source,
            out=out,
            config=config,
            settings=settings or [],
            vectors=True,
            on_progress=on_progress,
        )
    place = str(prepared.folder)  # for scripts as it is; on a terminal without control characters
    typer.echo(escape_controls(place) if stdout.is_terminal else place)


@data.command()
def choose(
    model: options.Model,
    pool: Annotated[
        list[str],
        argument("POOL", "The documents to choose from: files, or a folder. Labels are not read."),
    ],
    out: Annotated[Path, new_file("The file to write: .csv, .xlsx, .parquet, or else JSON Lines.")],
    reading: options.Reading,
    n: Annotated[int, option("How many documents to choose.", "N", "--n", min=1)] = 200,
    split: Annotated[str | None, part("train")] = None,
    rule: options.Rule = None,
    device: options.Device = "auto",
    csv_dialect: options.CsvDialect = None,
) -> None:
    """Choose the documents to tag next: uncertain ones that differ from each other.

    Writes the fields of each document, the labels that MODEL proposes, their probability, and the
    labels that it is least sure about. The most useful documents come first. Documents that MODEL
    was trained on, repeated texts and empty texts are left out.
    """
    source = reading.source(pool, require_labels=False, model=model)
    dialect = _check_table_input(source, out, csv_dialect)
    tagger = setrnn.load(model, device)
    check_table(out, tagger.labels.names, dialect.separator)
    with terminal_progress() as on_progress:
        chosen = setrnn.choose(tagger, source, n, split=split, rule=rule, on_progress=on_progress)
    setrnn.write_chosen(chosen, out, source.options.id_field, dialect)
    note(f"Wrote {out}: {len(chosen):,} documents")


@data.command()
def doubt(
    data: options.Data,
    out: Annotated[Path, new_file("The file to write: .csv, .xlsx, .parquet, or JSON Lines.")],
    reading: options.Reading,
    method: Annotated[
        str | None,
        option(
            "The systems that judge the labels, separated by commas.",
            "NAMES",
            default="br,br-support,pcc",
        ),
    ] = None,
    folds: Annotated[
        int, option("Each document is judged by systems trained on the other folds.", min=2)
    ] = 5,
    top: Annotated[
        int | None,
        option("How many documents to write.", "N", min=1, default="all of them"),
    ] = None,
    split: Annotated[str | None, part("train")] = None,
    csv_dialect: options.CsvDialect = None,
) -> None:
    """Find documents whose labels are probably wrong, the most suspicious first.

    Writes the fields of each document, a score, the most probable other set, and the labels to add
    and to remove with their probabilities. Correct the labels there, then train or update with the
    file.
    """
    source = reading.source(data)
    dialect = _check_table_input(source, out, csv_dialect)
    with terminal_progress() as on_progress:
        methods = method and method.split(",")
        found = setrnn.doubt(
            source, methods, folds=folds, top=top, split=split, on_progress=on_progress
        )
    labels = {name for each in found for name in (*each.example.labels, *each.labels, *each.to_add)}
    check_table(out, sorted(labels), dialect.separator)
    setrnn.write_doubts(found, out, source.options.id_field, dialect)
    note(f"Wrote {out}: {len(found):,} documents")


def _check_table_input(source: Source, out: Path, name: DialectName | None) -> Dialect:
    """Raise if the output is one of the inputs, or cannot be written; return how to write it."""
    files: list[Path] = []
    if source.prepared_folder is None:
        dataset = source.open()
        refuse_own_input(dataset, out)
        files = [file for part in dataset.splits.values() for file in part.files]
    dialect = find_dialect(files, source.options, name)
    check_table(out, (), dialect.separator)
    return dialect


def refuse_own_input(dataset: Dataset, out: Path) -> None:
    """Raise if the output is one of the inputs."""
    files = (file for split in dataset.splits.values() for file in split.files)
    if out.is_file() and any(file.exists() and out.samefile(file) for file in files):
        raise DataError(f"{out} is the input itself. Name another file to write.")


@contextmanager
def _documents(source: Source, dataset: Dataset) -> Iterator[dict[str, Iterator[Example]]]:
    """Yield the documents of each part, which show their progress; then report bad rows."""
    bad_rows = BadRows(source.on_bad_row)
    with terminal_progress() as on_progress:
        yield {
            name: watch(each.read(bad_rows), name, on_progress)
            for name, each in dataset.splits.items()
        }
    bad_rows.report()
