"""`setrnn update`: train a model further on new documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import setrnn
from setrnn.cli.console import note, stdout
from setrnn.cli.options import Device, Model, Reading, Resume, with_reading
from setrnn.cli.progress import terminal_progress
from setrnn.data.cache import Source
from setrnn.data.read import BadRows, ReadOptions
from setrnn.errors import DataError
from setrnn.metrics import MEASURES


@with_reading
def update(
    model: Model,
    new: Annotated[
        list[str],
        typer.Argument(
            metavar="NEW",
            help="The new documents with labels: a file, several, a folder of files, hf:NAME, or "
            "an export of the page.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder to write; not MODEL itself.")],
    reading: Reading,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="OLD",
            help="The documents that MODEL was trained on; may be repeated. Their fields have the "
            "names given for NEW, or the usual ones. Without them, old knowledge may be lost.",
            show_default=False,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change one setting of the further training, such as training.epochs=5; may be "
            "repeated.",
        ),
    ] = None,
    device: Device = "auto",
    resume: Resume = False,
) -> None:
    """Update a model with new documents and labels, without training from the beginning.

    A document of NEW replaces one of OLD with the same id or text. Labels that MODEL lacks are
    added. Networks are trained further for a few epochs, classical systems are fitted again, a
    mixture gets new weights. The result is calibrated to the target accuracy of MODEL. The table
    shows the measures of both models on valid documents: those of OLD and NEW, or, where they have
    no valid part, the documents of OLD that MODEL was not trained on, and a tenth of NEW.
    """
    with terminal_progress() as show:
        tagger = setrnn.update(
            model,
            reading.source(new),
            data=_old_source(reading, data) if data else None,
            out=out,
            settings=settings or [],
            device=device,
            resume=resume,
            on_progress=show,
        )
    note(f"Wrote {out}")
    stdout.print(_change_table(tagger.notes["updated"], tagger.rule_or_own(None)))


def _old_source(reading: Reading, data: list[str]) -> Source:
    """Read old documents by the given names of fields or, if they have none, by the usual names."""
    source = reading.source(data)
    usual = replace(source, options=ReadOptions(encoding=source.options.encoding))
    return usual if not _can_read(source) and _can_read(usual) else source


def _can_read(source: Source) -> bool:
    try:
        next(source.open().require("train").read(BadRows(source.on_bad_row)), None)
    except DataError:
        return False
    return True


def _change_table(found: Mapping[str, Any], rule: str) -> Table:
    """Show the measures before and after, on old and on new documents."""
    table = Table(title=f"On valid documents, by rule {rule}", title_justify="left")
    for name in ("documents", "model"):
        table.add_column(name)
    scores, seen = found["scores"], []
    measures = [each for each in MEASURES if all(each in row["after"] for row in scores.values())]
    for measure in measures:
        table.add_column(MEASURES[measure], justify="right")
    for kind, row in scores.items():
        for when, values in row.items():
            mark = "*" if values["share_trained_on"] > 0 else ""
            if mark:
                seen.append(f"{when} on {kind} documents: {values['share_trained_on']:.0%}")
            first = f"{found['n_measured'][kind]:,} {kind}" if when == "before" else ""
            table.add_row(first, when + mark, *(f"{values[each]:.3f}" for each in measures))
    if seen:
        table.caption = (
            f"* Too good: the model was trained on some of these documents ({'; '.join(seen)})."
        )
        table.caption_justify = "left"
    return table
