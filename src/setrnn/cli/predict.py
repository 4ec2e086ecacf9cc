"""`setrnn predict`: tag documents, or complete the labels that are known of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import setrnn
from setrnn.cli.console import note, warn
from setrnn.cli.data import refuse_own_input, report_skipped
from setrnn.cli.options import (
    BeamWidth,
    Device,
    Model,
    Reading,
    Rule,
    with_group,
    with_reading,
)
from setrnn.cli.progress import documents_progress, load_model, terminal_progress
from setrnn.cli.terminal import escape_json
from setrnn.data.cache import Source
from setrnn.data.disk import check_file_place
from setrnn.data.example import Example, KnownLabels
from setrnn.data.read import BadRows, Split, choose_split
from setrnn.data.read.dataset import STDIN, open_standard_input
from setrnn.data.read.lines import has_mark
from setrnn.data.read.write import is_table
from setrnn.errors import ConfigError
from setrnn.tagging.rows import (
    check_separator,
    json_rows,
    write_predicted_tasks,
    write_predictions,
)

if TYPE_CHECKING:
    from setrnn import Completion, Limits, Prediction, Tagger


TASKS = "label-studio"
WRITTEN = ("", ".jsonl", ".ndjson", ".json", ".txt", ".csv", ".parquet")


@dataclass(frozen=True)
class LimitOptions:
    """The limits on predicted sets, as given on the command line."""

    min_labels: Annotated[
        int, typer.Option(metavar="N", help="The least number of labels in a set.")
    ] = 0
    max_labels: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="The greatest number of labels in a set.", show_default=False
        ),
    ] = None
    only_seen: Annotated[
        bool,
        typer.Option("--only-seen", help="Predict only label sets that occurred in training."),
    ] = False
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="A label that every set must have; may be repeated."),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="A label that no set may have; may be repeated."),
    ] = None
    closed: Annotated[
        bool | None,
        typer.Option(
            "--closed/--not-closed",
            help="Whether each label of a set brings those above it in the model's hierarchy.",
            show_default="as the labels that the model was trained on",
        ),
    ] = None

    def limits(self) -> Limits:
        """Return the limits; the model checks the labels."""
        return setrnn.Limits(
            self.min_labels,
            self.max_labels,
            self.only_seen,
            self.require or (),
            self.forbid or (),
            self.closed,
        )


def with_limits(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that limit sets to a command, which gets them as the argument `limits`."""
    return with_group(command, "limits", LimitOptions)


def _option(metavar: str, text: str) -> Any:  # noqa: ANN401 (typer has no narrower type)
    group = "Options for many documents"
    return typer.Option(metavar=metavar, help=text, rich_help_panel=group, show_default=False)


@dataclass(frozen=True)
class WorkerOptions:
    """Who tags many documents, as given on the command line."""

    workers: Annotated[
        int | None,
        _option(
            "N",
            "Tag by N processes. The same command resumes after a stop. Default with a "
            "folder: one per core, or per GPU.",
        ),
    ] = None
    ray: Annotated[
        str | None,
        _option(
            "ADDRESS",
            "Tag Parquet files into a folder on a Ray cluster: auto for that of "
            "this machine, local to start one, or HOST:PORT. All nodes must see MODEL, INPUT "
            "and the folder.",
        ),
    ] = None
    gpus_per_worker: Annotated[
        float | None,
        _option("N", "The GPUs of each worker on a Ray cluster, such as 0.5."),
    ] = None
    format_out: Annotated[
        str | None,
        _option("jsonl|csv|parquet", "The format of the parts in a folder. Default: jsonl."),
    ] = None
    chunk_rows: Annotated[int | None, _option("N", "The rows of each part. Default: 5,000.")] = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def with_workers(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for many documents to a command, which gets them as `many`."""
    return with_group(command, "many", WorkerOptions)


@with_reading
@with_limits
@with_workers
def predict(
    model: Model,
    reading: Reading,
    limits: LimitOptions,
    many: WorkerOptions,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="The documents to tag; they need no labels. Files, a folder, or - for standard "
            "input: JSON Lines, CSV, or one text per line.",
            show_default=False,
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="A text to tag, in place of INPUT; may be repeated.", show_default=False),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            help="The file to write: .csv and .parquet keep the columns of INPUT, any other is "
            "JSON Lines; - writes to standard output. A name that ends in / is a folder of "
            "parts, which several workers write."
        ),
    ] = STDIN,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="label-studio",
            help="Write a .json file of Label Studio tasks with predictions, which it shows as "
            "pre-annotations.",
            show_default="by the suffix of --out",
        ),
    ] = None,
    rule: Rule = None,
    top: Annotated[
        int,
        typer.Option(
            help="How many sets to write per document. pcc and most networks find at most as many "
            "as their beam width."
        ),
    ] = 1,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", help="The part of INPUT to read.", show_default="test, or the only one"
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Write the model's own probabilities, not calibrated ones."),
    ] = False,
    device: Device = "auto",
    beam_width: BeamWidth = None,
    present_field: Annotated[
        str | None,
        typer.Option(
            "--present-field",
            help="The field or column of labels that are known to be right; the rest of each set "
            "is predicted.",
            show_default=False,
        ),
    ] = None,
    absent_field: Annotated[
        str | None,
        typer.Option(
            "--absent-field",
            help="The field or column of labels that are known to be wrong.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Tag documents; write a row for each, in the order of the input."""
    if bool(data) == bool(text):
        raise ConfigError("Name the documents to tag: either INPUT or --text.")
    wanted = limits.limits()
    has_known = present_field is not None or absent_field is not None
    if out.endswith("/") or many.given():
        if out == STDIN or text or STDIN in (data or []) or has_known or to is not None:
            raise ConfigError(
                "--workers, --ray and a folder as --out are for files: without standard input and "
                "output, --text, known labels and --to."
            )
        with terminal_progress() as show:
            done = setrnn.predict_files(
                model,
                reading.source(data or [], require_labels=False),
                out,
                rule=rule,
                top=top,
                limits=wanted,
                calibrated=not raw,
                beam_width=beam_width,
                split=split,
                device=device,
                on_progress=show,
                **many.given(),
            )
        n_files = f" in {len(done.files):,} files" if out.endswith("/") else ""
        note(f"Wrote {out}: {done.n_documents:,} documents{n_files}")
        report_skipped(done.bad_rows)
        return
    file = Path(out)
    if to is not None and (to != TASKS or file.suffix.lower() != ".json"):
        raise ConfigError(
            f"--to takes {TASKS} only, with an --out that ends in .json; got {to} and {out}."
        )
    check_file_place(file)
    if file.suffix.lower() not in WRITTEN:
        raise ConfigError(
            f"predict writes .jsonl, .csv and .parquet, not {file.suffix}. Choose another --out."
        )
    tagger = load_model(model, device)
    if beam_width is not None:
        tagger = tagger.with_beam_width(beam_width)
    tagger.rule_or_own(rule)
    tagger.known_limits(wanted)
    source = reading.source(data or [], require_labels=False)
    if is_table(file) or to is not None:
        if file.suffix.lower() == ".csv":
            check_separator(tagger.labels.names, source.options.label_separator)
        source = replace(source, options=replace(source.options, keep_columns=True))
    if has_known:
        if wanted != setrnn.Limits():
            raise ConfigError(
                "--present-field and --absent-field exclude limits on the sets. Write required "
                "labels into the one field and forbidden ones into the other."
            )
        source = _read_known_fields(source, tagger, present_field, absent_field, rule)
    bad_rows = BadRows(source.on_bad_row)
    with _open_input(source, text, split, file) as part:
        examples, for_rows = tee(part.read(bad_rows))
        found: Iterator[Prediction | Completion]
        if has_known:
            found = _complete(tagger, examples, top)
        else:
            documents = ((example.text, example.features) for example in examples)
            found = tagger.tag_stream(documents, rule, top, wanted, calibrated=not raw)
        if out == STDIN:
            sys.stdout.writelines(map(escape_json, json_rows(for_rows, found)))
        else:
            id_field, separator = source.options.id_field, source.options.label_separator
            with documents_progress() as advance:
                watched = _watch(found, advance)
                if to is not None:
                    write_predicted_tasks(
                        for_rows, watched, file, _name_version(model, tagger), id_field
                    )
                else:
                    mark = any(map(has_mark, part.files))
                    write_predictions(for_rows, watched, file, id_field, separator, mark=mark)
            note(f"Wrote {file}")
    report_skipped(bad_rows)


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
        yield dataset.require(split or choose_split(list(dataset.splits)))


def _name_version(folder: Path, tagger: Tagger) -> str:
    """Name a version of a model as `serve --label-studio` does."""
    return f"{folder.resolve().name}-{tagger.version}"


def _watch(
    found: Iterable[Prediction | Completion], advance: Callable[[str, int], None]
) -> Iterator[Prediction | Completion]:
    for each in found:
        yield each
        advance("tagging", 1)


def _read_known_fields(
    source: Source,
    tagger: Tagger,
    present_field: str | None,
    absent_field: str | None,
    rule: str | None,
) -> Source:
    """Read the known labels too, and check that the model has them."""
    if rule not in (None, "set"):
        raise ConfigError(
            f"Known labels are completed to the most probable set, not by rule '{rule}'. "
            "Leave out --rule, or --present-field and --absent-field."
        )
    if present_field == absent_field:
        raise ConfigError(
            f"--present-field and --absent-field are both '{present_field}'. Name two fields."
        )
    options = replace(
        source.options,
        present_field=present_field,
        absent_field=absent_field,
        check_known=tagger.check_known,
    )
    return replace(source, options=options)


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
