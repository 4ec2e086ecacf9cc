"""`setrnn predict`: tag documents, or complete the labels that are known of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import setrnn
from setrnn.cli import options
from setrnn.cli.data import refuse_own_input
from setrnn.cli.options import argument, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.terminal import escape_json, note, warn
from setrnn.data.disk import check_file_place
from setrnn.data.example import Example, KnownLabels
from setrnn.data.read import BadRows, Split, read_thresholds
from setrnn.data.read.dataset import STDIN, open_standard_input
from setrnn.data.read.delimited import find_dialect
from setrnn.data.read.write import is_table
from setrnn.data.source import Source
from setrnn.errors import ConfigError
from setrnn.models.hub import name_place
from setrnn.progress import watch
from setrnn.tagging.rows import (
    Columns,
    LabelColumns,
    check_table,
    json_rows,
    write_predicted_tasks,
    write_predictions,
)

if TYPE_CHECKING:
    from setrnn import Completion, Prediction, Tagger

TASKS = ".json"  # of Label Studio
SUFFIXES = ("", ".jsonl", ".ndjson", ".txt", ".csv", ".xlsx", ".parquet", TASKS)


@dataclass(frozen=True)
class WorkerOptions:
    """Who tags many documents."""

    panel: ClassVar[str] = "Many documents"
    workers: Annotated[
        int | None,
        option(
            "Tag with N processes. The same command resumes after a stop.",
            "N",
            default="with a folder, one per core or per GPU",
        ),
    ] = None
    ray: Annotated[
        str | None,
        option(
            "Tag Parquet files into a folder on a Ray cluster: auto for the one of this machine, "
            "local to start one, or HOST:PORT. All nodes must see MODEL, INPUT and the folder.",
            "ADDRESS",
        ),
    ] = None
    gpus_per_worker: Annotated[
        float | None, option("The GPUs of each worker on a Ray cluster, such as 0.5.", "N")
    ] = None
    chunk_rows: Annotated[
        int | None, option("The rows of each part in a folder.", "N", default="5000")
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def predict(
    model: options.Model,
    reading: options.Reading,
    limits: options.LimitOptions,
    many: WorkerOptions,
    data: Annotated[
        list[str] | None,
        argument(
            "INPUT",
            "The documents to tag; they need no labels. Files, a folder, or - for standard "
            "input: JSON Lines or one text per line.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None, option("A text to tag, in place of INPUT. May be repeated.", "TEXT")
    ] = None,
    out: Annotated[
        str,
        option(
            "The file to write: .csv, .xlsx and .parquet keep the columns of INPUT, .json is for "
            "tasks of Label Studio, any other is JSON Lines; - writes to standard output. A name "
            "that ends in / is a folder of parts, which several workers write."
        ),
    ] = STDIN,
    rule: options.Rule = None,
    thresholds: options.Thresholds = None,
    top: Annotated[
        int,
        option(
            "How many sets to write per document. pcc and most networks find at most as many as "
            "their beam width."
        ),
    ] = 1,
    split: options.TestPart = None,
    raw: Annotated[bool, option("Write the probabilities before calibration.")] = False,
    device: options.Device = "auto",
    beam_width: options.BeamWidth = None,
    present_field: Annotated[
        str | None,
        option(
            "The field or column of labels that are known to be right; the rest of each set is "
            "predicted."
        ),
    ] = None,
    absent_field: Annotated[
        str | None, option("The field or column of labels that are known to be wrong.")
    ] = None,
    overwrite: Annotated[
        bool, option("Replace the file OUT, if it exists. A folder of parts is never replaced.")
    ] = False,
    csv_dialect: options.CsvDialect = None,
    label_columns: Annotated[
        LabelColumns | None,
        option(
            "Add a column per label to a table: 1 or 0 for whether it is predicted, or its "
            "probability.",
            "binary|probability",
            default="no such columns",
        ),
    ] = None,
) -> None:
    """Tag documents; write a row for each, in the order of the input.

    Where labels of a document are known, the others are completed: see --present-field.
    """
    if bool(data) == bool(text):
        raise ConfigError("Name the documents to tag: either INPUT or --text.")
    has_known = present_field is not None or absent_field is not None
    source = reading.source(data or [], require_labels=False, model=model if data else None)
    wanted, rule = limits.limits(), options.rule_of(thresholds, rule)
    how: dict[str, Any] = {"rule": rule, "top": top, "limits": wanted, "calibrated": not raw}
    if out.endswith("/") or many.given():
        if out == STDIN or text or STDIN in source.places or has_known:
            raise ConfigError(
                "--workers, --ray and a folder as --out are for files: without standard input and "
                "output, --text and known labels."
            )
        from setrnn.tagging.files import PARTS  # it loads torch, which the help does not need

        is_begun = Path(out + PARTS).exists()
        options.refuse_replacing(Path(out), overwrite or is_begun, source.places)
        how |= {"beam_width": beam_width, "split": split, "device": device, **many.given()}
        if thresholds is not None:
            how |= {"thresholds": read_thresholds(thresholds, reading.encoding)}
        how |= {"csv_dialect": csv_dialect, "label_columns": label_columns}
        with terminal_progress() as on_progress:
            done = setrnn.predict_files(model, source, out, **how, on_progress=on_progress)
        n_files = f" in {len(done.files):,} files" if out.endswith("/") else ""
        note(f"Wrote {out}: {done.n_documents:,} documents{n_files}")
        done.bad_rows.report()
        return
    file = Path(out)
    suffix = file.suffix.lower()
    check_file_place(file)
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"predict writes .jsonl, .csv, .xlsx and .parquet, not {file.suffix}. Choose another "
            "--out."
        )
    options.refuse_replacing(file, overwrite, source.places)
    tagger = setrnn.load(model, device)
    if beam_width is not None:
        tagger = tagger.with_beam_width(beam_width)
    if thresholds is not None:
        tagger = tagger.with_thresholds(read_thresholds(thresholds, reading.encoding))
    read_options = replace(source.options, keep_columns=suffix == TASKS or is_table(file))
    columns = Columns.of(tagger, file, source.options.id_field, label_columns)
    if has_known:
        if label_columns == "probability":
            raise ConfigError("Known labels go with --label-columns binary, not probability.")
        _check_known(present_field, absent_field, rule, wanted != setrnn.Limits())
        read_options = replace(
            read_options,
            present_field=present_field,
            absent_field=absent_field,
            check_known=tagger.check_known,
        )
    source = replace(source, options=read_options)
    bad_rows = BadRows(source.on_bad_row)
    with _open_input(source, text, split, file) as part, terminal_progress() as on_progress:
        dialect = find_dialect(part.files, source.options, csv_dialect)
        check_table(file, tagger.labels.names, dialect.separator)
        examples, for_rows = tee(part.read(bad_rows))
        found: Iterator[Prediction | Completion]
        if has_known:
            found = _complete(tagger, examples, top)
        else:
            documents = ((each.text, each.features) for each in examples)
            found = columns.tag(tagger, documents, **how)
        if out == STDIN:
            sys.stdout.writelines(map(escape_json, json_rows(for_rows, found)))
        else:
            found = watch(found, "tagging", on_progress)
            if suffix == TASKS:
                # The version of the model is named as by `serve --label-studio`.
                version = f"{name_place(model)}-{tagger.version}"
                write_predicted_tasks(for_rows, found, file, version, source.options.id_field)
            else:
                write_predictions(for_rows, found, file, columns, dialect)
            note(f"Wrote {file}")
    bad_rows.report()


def _check_known(
    present_field: str | None, absent_field: str | None, rule: str | None, has_limits: bool
) -> None:
    """Raise if known labels do not go with the other options."""
    if has_limits or rule not in (None, "set"):
        raise ConfigError(
            "Known labels are completed to the most probable set: leave out --rule and the limits. "
            "Required labels belong into the one field, forbidden ones into the other."
        )
    if present_field == absent_field:
        raise ConfigError(
            f"--present-field and --absent-field are both '{present_field}'. Name two fields."
        )


@contextmanager
def _open_input(
    source: Source, texts: list[str] | None, split: str | None, out: Path
) -> Iterator[Split]:
    """Yield the documents to tag: texts, standard input, or a part of a dataset."""
    if texts:
        if source.options.known_fields:
            raise ConfigError("--text has no fields of known labels. Give them in a file.")
        given = [Example(f"text-{number}", each) for number, each in enumerate(texts, 1)]
        yield Split((), lambda bad_rows: iter(given))
    elif STDIN in source.places:
        if len(source.places) > 1:
            raise ConfigError("- is standard input, and cannot be read together with files.")
        with open_standard_input(sys.stdin.buffer, source.options, source.reader) as part:
            yield part
    else:
        dataset = source.open()
        refuse_own_input(dataset, out)
        yield dataset.choose(split)


def _complete(tagger: Tagger, examples: Iterable[Example], top: int) -> Iterator[Completion]:
    """Complete each document; warn at the end if no document has a known label."""
    for_texts, for_known = tee(examples)
    documents = ((each.text, each.features) for each in for_texts)
    known = (each.known or KnownLabels() for each in for_known)
    has_known = False
    for found in tagger.complete_stream(documents, known, top):
        has_known = has_known or bool(found.present or found.absent)
        yield found
    if not has_known:
        warn("No row has a known label. Check --present-field and --absent-field.")
