"""Stream a dataset from the Hugging Face hub: `hf:NAME` or `hf:NAME:SPLIT`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.read.reader import SPLIT_NAMES, BadRows, Format, ReadOptions, Split
from setrnn.data.read.rows import example_maker, read_rows
from setrnn.errors import DataError, MissingExtraError, printable

PREFIX = "hf:"


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find the splits of a dataset by its name; return none for a file or folder."""
    address = place.as_posix()
    if not address.startswith(PREFIX):
        return {}
    name, _, wanted = address.removeprefix(PREFIX).partition(":")
    if not name:
        raise DataError("'hf:' lacks the name of a dataset. Write hf:NAME or hf:NAME:SPLIT.")
    try:
        import datasets
    except ImportError as error:
        raise MissingExtraError("datasets", "hf", f"Reading {PREFIX}{name}") from error
    with _hub_errors(f"{PREFIX}{name}"):
        loaded = datasets.load_dataset(name, split=wanted or None, streaming=True)
    parts = {wanted: loaded} if wanted else loaded
    splits: dict[str, Split] = {}
    for part, rows in parts.items():
        # A single split of any name is the split "train", like a single file.
        split = SPLIT_NAMES.get(part, "train" if wanted else None)
        if split is not None and split not in splits:
            splits[split] = Split((), partial(_read, rows, f"{PREFIX}{name} {part}", options))
    if not splits:
        raise DataError(
            f"{PREFIX}{name} has no train, valid or test part: it has {', '.join(parts)}. "
            f"Name one: {PREFIX}{name}:SPLIT."
        )
    return splits


def _read(rows: Any, name: str, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:  # noqa: ANN401
    """Stream the documents of one split."""
    make = example_maker(options, name.rpartition(" ")[2])
    class_names = {field: _class_names(rows, field) for field in options.list_fields}

    def make_with_names(row: dict[str, Any], number: int) -> Example:
        named = {
            # `make` refuses what is not a list, and what has no name.
            field: [names[each] if each in range(len(names)) else each for each in row[field]]
            for field, names in class_names.items()
            if names and isinstance(row.get(field), list)
        }
        return make({**row, **named}, number)

    numbered = enumerate(_rows(rows, name), start=1)
    return read_rows(numbered, make_with_names, bad_rows, f"{name} row")


def _rows(rows: Any, name: str) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    with _hub_errors(name):
        yield from rows


@contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Turn whatever the network or the hub raises into a DataError."""
    try:
        yield
    except Exception as error:  # of many classes: no list would be complete
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        reason = printable(reason if len(reason) <= 120 else reason[:120] + "...").rstrip(".")
        raise DataError(
            f"{name} cannot be read: {reason}. Check the name and the network."
        ) from error


def _class_names(rows: Any, field: str) -> list[str] | None:  # noqa: ANN401
    """Return the class names of a column of class numbers; None for other columns."""
    kind = (getattr(rows, "features", None) or {}).get(field)
    inner = kind[0] if isinstance(kind, list) and kind else getattr(kind, "feature", None)
    names: list[str] | None = getattr(inner, "names", None)
    return names


FORMAT = Format(finder=find, prefix=PREFIX)
