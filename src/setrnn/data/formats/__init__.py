"""Read tagged documents: one format a file, and a plain dict of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from setrnn.data.formats import aapd, delimited, huggingface, jsonl, parquet, rcv1, reuters
from setrnn.data.formats.lines import file_errors
from setrnn.data.formats.reader import (
    SPLIT_NAMES,
    BadRows,
    Finder,
    ReadOptions,
    Split,
    file_stem,
    never_empty,
)
from setrnn.data.formats.row import printable
from setrnn.data.formats.write import write_examples
from setrnn.errors import DataError, nearest_name

__all__ = [
    "READERS",
    "SPLIT_NAMES",
    "BadRows",
    "Dataset",
    "Finder",
    "ReadOptions",
    "Split",
    "open_dataset",
    "write_examples",
]

# All are tried on a file or folder, in this order.
READERS: dict[str, Finder] = {
    "jsonl": jsonl.find,
    "csv": delimited.find,
    "parquet": parquet.find,
    "aapd": aapd.find,
    "rcv1": rcv1.find,
    "reuters": reuters.find,
    "huggingface": huggingface.find,
}

# Their rows have fields, and so room for labels known beforehand.
WITH_FIELDS = ("jsonl", "csv", "parquet", "huggingface")

EMBEDDED = "newsroom"
PREPARED = "prepared.json"

_FILE_SUFFIXES = (*jsonl.SUFFIXES, *delimited.SUFFIXES, *parquet.SUFFIXES, *reuters.SUFFIXES)


@dataclass(frozen=True)
class Dataset:
    """The parts of a dataset, each ready to be streamed."""

    name: str
    place: str
    splits: dict[str, Split]
    valid_is_cut: bool = False  # from train, by setrnn.data.cut

    def require(self, split: str) -> Split:
        """Return a split, or say which ones there are."""
        if split in self.splits:
            return self.splits[split]
        if self.place.startswith(huggingface.PREFIX):
            advice = "Name another dataset."
        elif Path(self.place).is_dir():
            advice = f"Add {split}.jsonl (or .csv, .parquet) to the folder."
        else:
            advice = f"Give a folder that holds {split}.jsonl (or .csv, .parquet)."
        found = ", ".join(sorted(self.splits))
        raise DataError(f"{self.place} has no '{split}' part: found {found}. {advice}")


def open_dataset(
    data: str | Path,
    options: ReadOptions = ReadOptions(),  # noqa: B008 - frozen
    reader: str | None = None,
) -> Dataset:
    """Find the splits of a file, a folder, `hf:NAME` or the embedded corpus; read nothing yet.

    The string "newsroom" always means the embedded corpus: write ./newsroom, or pass a Path, for
    a file or folder of that name. A lone file is the split "train". `reader` names the one format
    to look for, and takes a lone file whatever its suffix.
    """
    if reader is not None and reader not in READERS:
        raise DataError(f"No format is called '{reader}'. {nearest_name(reader, READERS)}")
    place = str(data)
    if options.known is not None:
        _check_fields(place, reader or (EMBEDDED if data == EMBEDDED else "jsonl"))
    if data == EMBEDDED and reader is None:
        from setrnn.data import newsroom

        return _dataset(EMBEDDED, place, newsroom.splits())
    if place.startswith(huggingface.PREFIX):
        name = place.removeprefix(huggingface.PREFIX).partition(":")[0]
        return _dataset(name, place, huggingface.find(Path(place), options))
    path = Path(data)
    with file_errors(path):
        _check_place(path, place)
        splits = _named_reader(path, options, reader) if reader else _all_readers(path, options)
        if not splits:
            raise _nothing_found(path, reader)
        name = path.resolve().name if path.is_dir() else file_stem(path)
        return _dataset(name, place, splits)


def _dataset(name: str, place: str, splits: dict[str, Split]) -> Dataset:
    checked = {
        split: never_empty(part, f"The '{split}' part of {place}") for split, part in splits.items()
    }
    return Dataset(name, place, checked)


def _named_reader(path: Path, options: ReadOptions, reader: str) -> dict[str, Split]:
    return READERS[reader](path, replace(options, any_suffix=True))


def _all_readers(path: Path, options: ReadOptions) -> dict[str, Split]:
    """Collect the splits of every reader, and refuse one that two of them offer."""
    found: dict[str, tuple[str, Split]] = {}
    for reader, find in READERS.items():
        for name, split in find(path, options).items():
            if name in found:
                other, first = found[name]
                raise DataError(
                    f"{path} holds the split '{name}' twice: {first.files[0].name} ({other}) and "
                    f"{split.files[0].name} ({reader}). Remove one, or choose with --format."
                )
            if options.known is not None:
                _check_fields(str(path), reader)
            found[name] = (reader, split)
    return {name: split for name, (_, split) in found.items()}


def _check_fields(place: str, reader: str) -> None:
    """Refuse a format without fields where known labels are to be read from one."""
    if reader not in WITH_FIELDS:
        raise DataError(
            f"{place} ({reader}) has no fields for known labels. Give a JSON Lines, CSV or Parquet "
            "file: setrnn data convert makes one."
        )


def _check_place(path: Path, place: str) -> None:
    """Refuse what is not a file or a folder of documents."""
    if not place or "\0" in place:
        raise DataError(f"'{printable(place)}' names no file. Give a file, a folder or a dataset.")
    if (path / PREPARED).is_file():
        raise DataError(
            f"{path} is a prepared folder: it holds numbers, no longer documents. Use it with "
            "train and evaluate; convert and split take the data it was made from."
        )
    if path.is_file() or path.is_dir():
        return
    if path.exists():
        raise DataError(f"{path} is neither a file nor a folder. Save the documents to a file.")
    if path.parent.is_dir():
        siblings = [sibling.name for sibling in path.parent.iterdir()]
        if path.name == place:
            siblings.append(EMBEDDED)
        raise DataError(f"{path} does not exist.{_nearest_sibling(path, siblings)}")
    raise DataError(f"{path} does not exist: there is no folder {path.parent}. Check the path.")


def _nearest_sibling(path: Path, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean '{printable(close[0])}'?" if close else " Check the name."


def _nothing_found(path: Path, reader: str | None) -> DataError:
    if reader:
        return DataError(f"{path} holds nothing in the format '{reader}'. Leave out --format.")
    if path.is_file():
        return DataError(
            f"{path} has no known suffix ({', '.join(_FILE_SUFFIXES)}). "
            "Rename it, or say what it is: --format jsonl, csv or parquet."
        )
    return DataError(
        f"{path} holds no documents: looked for train, valid and test with "
        f"{', '.join(jsonl.SUFFIXES + delimited.SUFFIXES + parquet.SUFFIXES)}, and for the AAPD, "
        "RCV1-v2 and Reuters files. Add train.jsonl."
    )
