"""Where a model is: in a folder, in a zip file, or on the Hugging Face hub as `hub:NAME`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setrnn.data.model_copies import unpack_zip
from setrnn.data.model_hub import PREFIX, HubName, download, is_hub
from setrnn.errors import ConfigError, ModelError
from setrnn.progress import OnProgress, ignore_progress


def is_zip(place: str | Path) -> bool:
    """Return whether a place is a zip file; a folder may have any name."""
    path = Path(place)
    return path.suffix.lower() == ".zip" and not path.is_dir() and not is_hub(place)


def name_place(place: str | Path) -> str:
    """Return the name of a model: that of its folder, its file, or on the hub.

    Example:
        >>> [name_place(each) for each in ("models/news", "news.zip", "hub:me/news@v1")]
        ['news', 'news', 'news']
    """
    if is_hub(place):
        return HubName.parse(place).name.rpartition("/")[2]
    path = Path(place)
    if is_zip(place):
        return path.stem
    return path.resolve().name if path.name in ("", "..") else path.name


@contextmanager
def open_place(place: str | Path, on_progress: OnProgress = ignore_progress) -> Iterator[Path]:
    """Yield the folder of a model; it may be gone after the block. Errors name the place."""
    if is_hub(place):
        with _named(download(place, on_progress), place) as folder:
            yield folder
    elif is_zip(place):
        with tempfile.TemporaryDirectory(prefix="setrnn-") as name:
            unpack_zip(Path(place), Path(name))
            with _named(Path(name), place) as folder:
                yield folder
    else:
        yield Path(place)


@contextmanager
def _named(folder: Path, place: str | Path) -> Iterator[Path]:
    """Yield a folder; errors name the place that it was made from."""
    try:
        yield folder
    except ModelError as error:
        raise ModelError(str(error).replace(str(folder), str(place))) from error


def fix_place(place: str | Path) -> str:
    """Return a place at which another process finds the same model: absolute, or one commit."""
    if not is_hub(place):
        return str(Path(place).absolute())
    return f"{PREFIX}{HubName.parse(place).name}@{download(place).name}"


def require_folder(place: str | Path, purpose: str) -> None:
    """Raise ConfigError if a model is not in a folder, and therefore cannot be changed."""
    if is_hub(place) or is_zip(place):
        raise ConfigError(
            f"{purpose} changes a model folder, and {place} is not one. Copy it first: "
            f"setrnn push {place} {name_place(place)}"
        )
