"""`setrnn show`: what a model is."""

from __future__ import annotations

import setrnn
from setrnn.cli import options
from setrnn.cli.terminal import stdout, write_json
from setrnn.models.folder import GENERATED
from setrnn.models.hub import name_place


def show(model: options.Model, json: options.JsonFile = None) -> None:
    """Show what a model is: method, data, labels, measures, calibration, versions.

    This is what MODEL/README.md says, unless a person has changed it.
    """
    from setrnn.models.card import write_readme  # it loads scipy: the help needs none

    tagger = setrnn.load(model, "cpu")
    text = write_readme(tagger).removeprefix(GENERATED).strip()
    stdout.print(text, markup=False, highlight=False, soft_wrap=True)
    if json is not None:
        write_json(json, {"model": name_place(model), **setrnn.describe_model(tagger)})
