"""The names that models are asked by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from setrnn.errors import ConfigError


def named_folders(models: Sequence[str]) -> dict[str, Path]:
    """Name the folders that are to be served: by themselves, or NAME=FOLDER."""
    folders: dict[str, Path] = {}
    for each in models:
        name, is_named, folder = each.partition("=")
        path = Path(folder if is_named and not Path(each).is_dir() else each)
        name = name if is_named and not Path(each).is_dir() else path.resolve().name
        if not name:
            raise ConfigError(f"'{each}' gives the model no name. Write NAME=FOLDER.")
        if name in folders:
            raise ConfigError(
                f"Two models are named '{name}'. Name one otherwise: other-{name}={path}"
            )
        folders[name] = path
    return folders
