"""`setrnn update`: train a model further on new documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import setrnn
from setrnn.cli import options
from setrnn.cli.options import argument, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import show_measures
from setrnn.cli.terminal import note
from setrnn.metrics import MEASURES


def update(
    model: options.Model,
    new: Annotated[
        list[str],
        argument(
            "NEW",
            "The new documents with labels: files, a folder of files, hf:NAME, or an export of the "
            "page of setrnn serve.",
        ),
    ],
    out: Annotated[Path, option("The model folder to write; not MODEL itself.")],
    reading: options.Reading,
    data: Annotated[
        list[str] | None,
        option(
            "The documents that MODEL was trained on, without which it may forget what they teach. "
            "They are read as NEW is. May be repeated.",
            "OLD",
        ),
    ] = None,
    settings: options.Settings = None,
    device: options.Device = "auto",
    overwrite: options.Overwrite = False,
) -> None:
    """Update a model with new documents and labels, without training from the beginning.

    A document of NEW replaces one of OLD with the same id or text. Labels that MODEL lacks are
    added. Networks are trained further for a few epochs, classical systems are fitted again, a
    mixture gets new weights. The result is calibrated to the target accuracy of MODEL. The table
    shows the measures of both models on valid documents: those of OLD and NEW, or, where they have
    no valid part, the documents of OLD that MODEL was not trained on, and a tenth of NEW.
    """
    options.refuse_replacing(out, overwrite, [model])
    with terminal_progress() as on_progress:
        tagger = setrnn.update(
            model,
            reading.source(new, model=model),
            data=reading.source(data, model=model) if data else None,
            out=out,
            settings=settings or [],
            device=device,
            on_progress=on_progress,
        )
    note(f"Wrote {out}")
    _show_change(tagger.notes["updated"], tagger.rule_or_own(None))


def _show_change(found: Mapping[str, Any], rule: str) -> None:
    """Print the measures of a model before and after its update, on old and on new documents."""
    rows, seen = {}, []
    for kind, row in found["scores"].items():
        for when, values in row.items():
            share = values["share_trained_on"]
            if share > 0:
                seen.append(f"{when} on {kind} documents: {share:.0%}")
            rows[f"{found['n_measured'][kind]:,} {kind}, {when}{'*' * (share > 0)}"] = values
    caption = f"* Too good: the model was trained on some of these documents ({'; '.join(seen)})."
    measures = {
        key: name for key, name in MEASURES.items() if all(key in row for row in rows.values())
    }
    title = f"On valid documents, by rule {rule}"
    show_measures(title, rows, measures, caption if seen else "")
