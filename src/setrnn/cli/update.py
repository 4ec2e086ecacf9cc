"""`setrnn update`: train a model further on new documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import setrnn
from setrnn.cli.options import Device, Model, Reading, argument, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import change_table
from setrnn.cli.terminal import note, stdout
from setrnn.data.cache import Source
from setrnn.data.read import BadRows, ReadOptions
from setrnn.errors import DataError


def update(
    model: Model,
    new: Annotated[
        list[str],
        argument(
            "NEW",
            "The new documents with labels: a file, several, a folder of files, hf:NAME, or an "
            "export of the page.",
        ),
    ],
    out: Annotated[Path, option("The model folder to write; not MODEL itself.")],
    reading: Reading,
    data: Annotated[
        list[str] | None,
        option(
            "The documents that MODEL was trained on; may be repeated. Their fields have the "
            "names given for NEW, or the usual ones. Without them, old knowledge may be lost.",
            "OLD",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        option(
            "Change one setting of the further training, such as training.epochs=5; may be "
            "repeated.",
            "KEY=VALUE",
            "--set",
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Update a model with new documents and labels, without training from the beginning.

    A document of NEW replaces one of OLD with the same id or text. Labels that MODEL lacks are
    added. Networks are trained further for a few epochs, classical systems are fitted again, a
    mixture gets new weights. The result is calibrated to the target accuracy of MODEL. The table
    shows the measures of both models on valid documents: those of OLD and NEW, or, where they have
    no valid part, the documents of OLD that MODEL was not trained on, and a tenth of NEW.
    """
    with terminal_progress() as on_progress:
        tagger = setrnn.update(
            model,
            reading.source(new),
            data=_old_source(reading, data) if data else None,
            out=out,
            settings=settings or [],
            device=device,
            on_progress=on_progress,
        )
    note(f"Wrote {out}")
    stdout.print(change_table(tagger.notes["updated"], tagger.rule_or_own(None)))


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
