"""What every reader shares: its options, its bad rows, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from setrnn.data.example import Example
from setrnn.errors import BadRowError, DataError

SPLIT_NAMES = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}

OnBadRow = Literal["stop", "skip"]


@dataclass(frozen=True)
class ReadOptions:
    """How to read rows: which field is which, and what is asked of them."""

    id_field: str = "id"
    text_field: str = "text"
    labels_field: str = "labels"
    features_field: str = "features"
    label_separator: str = ";"
    require_labels: bool = True
    max_row_bytes: int = 10_000_000


@dataclass
class BadRows:
    """The rows that could not be read: raised at once, or counted and passed over."""

    on_bad_row: OnBadRow = "stop"
    n_skipped: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, error: BadRowError) -> None:
        """Raise the error, or count it and keep the first five to show at the end."""
        if self.on_bad_row == "stop":
            raise error
        self.n_skipped += 1
        if len(self.first) < 5:
            self.first.append(str(error))


@dataclass(frozen=True)
class Split:
    """One part of a dataset: the files it lies in and a way to stream it, any number of times."""

    files: tuple[Path, ...]
    read: Callable[[BadRows], Iterator[Example]]


# A reader looks at a file or folder and returns the splits it finds there in its format:
# none if the place holds nothing of the kind; a lone file is the split "train".
Finder = Callable[[Path, ReadOptions], dict[str, Split]]


def find_files(place: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """Find one file a split, by its suffix: `place` itself, or train/valid/test inside it."""
    if place.is_file():
        return {"train": place} if place.name.endswith(suffixes) else {}
    found: dict[str, Path] = {}
    for stem, split in SPLIT_NAMES.items():
        for suffix in suffixes:
            path = place / f"{stem}{suffix}"
            if not path.is_file():
                continue
            if split in found:
                raise DataError(
                    f"{place} holds the split '{split}' twice: {found[split].name} and "
                    f"{path.name}. Remove or rename one."
                )
            found[split] = path
    return found
