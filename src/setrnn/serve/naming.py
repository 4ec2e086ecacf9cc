"""The names that models are asked by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from setrnn.data.tokenizing import whole_characters
from setrnn.errors import ConfigError


def named_folders(models: Sequence[str]) -> dict[str, Path]:
    """Name the folders that are to be served: by themselves, or NAME=FOLDER."""
    folders: dict[str, Path] = {}
    for each in models:
        name, is_named, folder = each.partition("=")
        if not is_named or Path(each).is_dir():
            name, folder = _own_name(Path(each)), each
        path = Path(folder)
        if not name or whole_characters(name) != name:
            raise ConfigError(f"'{each}' gives the model no name. Write NAME=FOLDER.")
        if name in folders:
            raise ConfigError(
                f"Two models are named '{name}'. Name one otherwise: other-{name}={path}"
            )
        folders[name] = path
    return folders


def _own_name(folder: Path) -> str:
    """Return a folder's name; a link is named by itself, not by where it leads."""
    return folder.resolve().name if folder.name in ("", "..") else folder.name
