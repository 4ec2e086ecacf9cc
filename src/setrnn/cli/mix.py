"""`setrnn mix`: make one model of several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import setrnn
from setrnn.cli.options import (
    AllowTrainingDocuments,
    Device,
    ModelOut,
    Reading,
    argument,
    option,
)
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import members_table, weights_table
from setrnn.cli.terminal import note, stdout
from setrnn.errors import ConfigError


def mix(
    models: Annotated[
        list[Path], argument("MODEL", "Models with the same labels: folders or hub:NAME.")
    ],
    data: Annotated[
        str,
        option(
            "Documents with labels that no model was trained on: a file, a folder with a "
            "valid part, a prepared folder, hf:NAME, or newsroom.",
            "DATA",
        ),
    ],
    out: ModelOut,
    reading: Reading,
    split: Annotated[
        str | None, option("The part of DATA to read.", default="valid, or the only one")
    ] = None,
    device: Device = "auto",
    allow_training_documents: AllowTrainingDocuments = False,
) -> None:
    """Make one model of several, with weights fitted for each prediction rule.

    The probability of a set is the weighted mean of those of the models. The weights are fitted on
    DATA. The tables show each measure by its own rule on these documents, for each model and for
    the mixture, and the weights.
    """
    if out.resolve() in (model.resolve() for model in models):
        raise ConfigError(f"--out is {out}, one of the models to mix. Name another folder.")
    with terminal_progress() as on_progress:
        tagger = setrnn.mix(
            models,
            reading.source(data),
            split=split,
            out=out,
            device=device,
            allow_training_documents=allow_training_documents,
            on_progress=on_progress,
        )
    found = tagger.notes["mixture"]
    stdout.print(members_table(found), weights_table(found), sep="\n")
    note(f"Wrote {out}")
