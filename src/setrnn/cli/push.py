"""`setrnn push`: share models."""

from __future__ import annotations

from typing import Annotated

import setrnn
from setrnn.cli.options import argument, option
from setrnn.cli.terminal import note
from setrnn.errors import ConfigError
from setrnn.models.hub import name_place


def push(
    models: Annotated[list[str], argument("MODEL", "Model folders or hub:NAME.")],
    to: Annotated[
        str,
        argument(
            "TO", "A folder or hub:OWNER/NAME; if it ends in /, the name of each model follows."
        ),
    ],
    private: Annotated[bool, option("Make a new repository on the hub private.")] = False,
) -> None:
    """Copy models to a folder or to the Hugging Face hub, or from the hub.

    Every command reads a MODEL from both places. hub:OWNER/NAME is created if it does not exist;
    hub:OWNER/NAME@VERSION also gives the version a tag. A note says what can be read from a public
    model before it is sent: labels, words, hashes of training documents. The token is HF_TOKEN, or
    that of hf auth login.
    """
    if len(models) > 1 and not to.endswith("/"):
        raise ConfigError(f"{len(models)} models need a place that ends in /, got {to}.")
    names = [name_place(model) for model in models]
    if same := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"Two models are named '{min(same)}'. Push them one after the other.")
    for model in models:
        place = setrnn.push(model, to, private=private)
        note(f"Pushed {model} to {place}")
