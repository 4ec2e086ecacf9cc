"""`setrnn mix`: make one model of several."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import setrnn
from setrnn.cli import options
from setrnn.cli.options import argument, option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import show_members, show_table
from setrnn.cli.terminal import note
from setrnn.errors import ConfigError


def mix(
    models: Annotated[
        list[str], argument("MODEL", "Models with the same labels: folders or hub:NAME.")
    ],
    data: Annotated[
        str,
        option(
            "Documents with labels that no model was trained on: a file, a folder with a "
            "valid part, a prepared folder, hf:NAME, or newsroom.",
            "DATA",
        ),
    ],
    out: options.ModelOut,
    reading: options.Reading,
    split: options.ValidPart = None,
    device: options.Device = "auto",
    allow_training_documents: options.AllowTrainingDocuments = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Make one model of several, with weights fitted for each prediction rule.

    The probability of a set is the weighted mean of those of the models. The weights are fitted on
    DATA. The tables show each measure by its own rule on these documents, for each model and for
    the mixture, and the weights.
    """
    if out.resolve() in (Path(model).resolve() for model in models):
        raise ConfigError(f"--out is {out}, one of the models to mix. Name another folder.")
    options.refuse_replacing(out, overwrite)
    with terminal_progress() as on_progress:
        tagger = setrnn.mix(
            models,
            reading.source(data, model=models[0]),
            split=split,
            out=out,
            device=device,
            allow_training_documents=allow_training_documents,
            on_progress=on_progress,
        )
    found = tagger.notes["mixture"]
    show_members(found)
    _show_weights(found)
    note(f"Wrote {out}")


def _show_weights(found: Mapping[str, Any]) -> None:
    """Print the weights of each rule of a mixture, and how they were chosen."""
    rules = found["rules"]
    columns = [*(each["weights"] for each in rules.values()), found["weights"]]
    ways = "; ".join(f"{rule}: {each['chosen']}" for rule, each in rules.items())
    show_table(
        "Weights by rule",
        ["", *rules, "others*"],
        (
            [name, *(f"{weight:.2f}" for weight in weights)]
            for name, *weights in zip(found["members"], *columns, strict=True)
        ),
        f"Chosen for {ways}. * Completion and the likelihood of sets: likelihood. Label "
        "probabilities: as hamming.",
    )
