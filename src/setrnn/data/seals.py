"""Seals: the size and the hash of each file of a folder, by which damage is found before use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from setrnn.data.folders import file_hash

Seal: TypeAlias = Mapping[str, Any]  # {"bytes": its size, "blake2b": its hash}


def seal_file(file: Path) -> dict[str, Any]:
    """Return the seal of a file.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "labels.json"
        >>> _ = file.write_text("[]")
        >>> seal_file(file)
        {'bytes': 2, 'blake2b': '7ebb3c7c2a87b1a2f8a7ed729ecb040d'}
    """
    return {"bytes": file.stat().st_size, "blake2b": file_hash(file)}


def seal_folder(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the seal of every file in a folder, by its path there."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): seal_file(file) for file in files}


def find_damage(
    folder: Path, seals: Mapping[str, Seal], is_hashed: Callable[[str], bool]
) -> Iterator[str]:
    """Yield what is wrong with each damaged file: its size, or its content if it is hashed."""
    for name, seal in seals.items():
        try:
            n_bytes = (folder / name).stat().st_size
            if n_bytes != seal["bytes"]:
                yield f"{name} has {n_bytes:,} bytes instead of {seal['bytes']:,}"
            elif is_hashed(name) and file_hash(folder / name) != seal["blake2b"]:
                yield f"{name} has been changed"
        except FileNotFoundError:
            yield f"{name} is missing"
        except OSError as error:
            yield f"{name} cannot be read ({error.strerror})"
