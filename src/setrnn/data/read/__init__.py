"""Read documents with labels: one format per file, and one dict of all formats."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.prepared import is_prepared
from setrnn.data.read import (
    aapd,
    delimited,
    huggingface,
    jsonl,
    label_studio,
    parquet,
    rcv1,
    reuters,
)
from setrnn.data.read.label_map import map_labels, read_label_map
from setrnn.data.read.parents import make_hierarchy, read_hierarchy
from setrnn.data.read.printing import printable
from setrnn.data.read.reader import (
    EMBEDDED,
    EMBEDDED_FOLDER,
    SPLIT_NAMES,
    BadRows,
    Finder,
    Format,
    ReadOptions,
    Split,
    file_errors,
    file_stem,
    refuse_empty,
)
from setrnn.data.read.several import (
    expand_places,
    find_part,
    find_tables,
    join_splits,
    note_unread,
)
from setrnn.data.read.write import write_examples, write_folder
from setrnn.errors import DataError, nearest_name

__all__ = [
    "EMBEDDED",
    "READERS",
    "SPLIT_NAMES",
    "BadRows",
    "Dataset",
    "Finder",
    "Format",
    "ReadOptions",
    "Split",
    "choose_split",
    "make_hierarchy",
    "open_dataset",
    "read_hierarchy",
    "read_label_map",
    "write_examples",
    "write_folder",
]

# Each is tried on a file or folder, in this order.
READERS: dict[str, Format] = {
    "jsonl": jsonl.FORMAT,
    "csv": delimited.FORMAT,
    "parquet": parquet.FORMAT,
    "aapd": aapd.FORMAT,
    "rcv1": rcv1.FORMAT,
    "reuters": reuters.FORMAT,
    "label-studio": label_studio.FORMAT,
    "huggingface": huggingface.FORMAT,
}

SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")  # which are saved as CSV first


@dataclass(frozen=True)
class Dataset:
    """The splits of a dataset, each ready to be streamed."""

    name: str
    place: str
    splits: dict[str, Split]
    valid_is_cut: bool = False  # from train, by setrnn.data.splits

    def require(self, split: str) -> Split:
        """Return a split; raise DataError with the splits that exist if it is missing."""
        if split in self.splits:
            return self.splits[split]
        if _prefix_format(self.place):
            advice = "Name another dataset."
        elif Path(self.place).is_dir():
            advice = f"Add {split}.jsonl (or .csv, .parquet) to the folder."
        else:
            advice = f"Give a folder that holds {split}.jsonl (or .csv, .parquet)."
        found = ", ".join(sorted(self.splits))
        raise DataError(f"{self.place} has no '{split}' part: found {found}. {advice}")


def choose_split(splits: Sequence[str], default: str = "test") -> str:
    """Return the only part of a dataset, or `default`."""
    return splits[0] if len(splits) == 1 else default


def open_dataset(
    data: str | Path | Sequence[str | Path],
    options: ReadOptions = ReadOptions(),  # noqa: B008 - frozen
    reader: str | None = None,
) -> Dataset:
    """Find the splits of files, a folder, `hf:NAME` or the embedded corpus; read nothing yet.

    Args:
        data: a path, a glob or an address, or several of them, whose splits are joined. The string
            "newsroom" is always the embedded corpus; write ./newsroom, or pass a Path, for a file
            or folder of that name. A single file is the split "train", and so are all files of
            a folder without files that are called train, valid or test.
        options: how to read rows.
        reader: the name of the only format to look for, one of READERS; a single file is then
            read whatever its suffix.

    Example:
        >>> dataset = open_dataset("newsroom")
        >>> list(dataset.splits)
        ['train', 'valid', 'test']
        >>> next(dataset.splits["test"].read(BadRows())).labels
        ('politics', 'parliament', 'budget', 'economy', 'sundareth')
    """
    if reader is not None and reader not in READERS:
        raise DataError(f"No format is called '{reader}'. {nearest_name(reader, READERS)}")
    places = expand_places([data] if isinstance(data, str | Path) else data)
    datasets = [_open_place(place, options, reader) for place in places]
    dataset = datasets[0]
    if len(datasets) > 1:
        n_more = len(datasets) - 1
        joined = _join_splits(datasets, options)
        dataset = Dataset(f"{dataset.name}+{n_more}", f"{dataset.place} and {n_more} more", joined)
    splits = dataset.splits
    if options.label_map is not None:
        splits = map_labels(splits, options.label_map)
    if options.hierarchy is not None and options.hierarchy.closes_labels:
        splits = {name: _close_labels(each, options.hierarchy) for name, each in splits.items()}
    checked = {
        name: refuse_empty(split, f"The '{name}' part of {dataset.place}")
        for name, split in splits.items()
    }
    return replace(dataset, splits=checked)


def _close_labels(split: Split, hierarchy: Hierarchy) -> Split:
    """Let each label of a document bring the labels above it."""

    def read(bad_rows: BadRows) -> Iterator[Example]:
        return hierarchy.close_examples(split.read(bad_rows))

    return replace(split, read=read)


def _open_place(data: str | Path, options: ReadOptions, reader: str | None) -> Dataset:
    """Find the splits of one file, folder or address."""
    place = str(data)
    if data == EMBEDDED and reader is None:
        if options.known_fields:
            raise _no_fields(place, EMBEDDED)
        return Dataset(EMBEDDED, place, jsonl.FORMAT.find(EMBEDDED_FOLDER, ReadOptions()))
    if remote := _prefix_format(place):
        name = place.removeprefix(remote.prefix).partition(":")[0]
        return Dataset(name, place, _with_source(name, remote.find(Path(place), options), options))
    path = Path(data)
    with file_errors(path):
        _check_place(path, place)
        formats = READERS
        if reader is not None:
            formats, options = {reader: READERS[reader]}, replace(options, any_suffix=True)
        splits = _find_splits(path, options, formats)
        name = path.resolve().name if path.is_dir() else file_stem(path)
        suffixes = chain(*(each.suffixes for each in formats.values() if not each.fixed_names))
        tables = find_tables(path, tuple(suffixes)) if path.is_dir() else []
        if splits:
            used = {file for split in splits.values() for file in split.files}
            splits = note_unread(splits, [table for table in tables if table not in used])
            return Dataset(name, place, _with_source(name, splits, options))
        if not tables:
            raise _nothing_found(path, reader)
        found = [_open_place(table, options, reader) for table in tables]
        return Dataset(name, place, _join_splits(found, options))


def _join_splits(datasets: Sequence[Dataset], options: ReadOptions) -> dict[str, Split]:
    """Join the splits of several places by their names; single files are joined into one split."""
    places = [Path(dataset.place) for dataset in datasets]
    are_files = all(place.is_file() for place in places)
    parts: dict[str, list[tuple[Path, Split]]] = {}
    for place, dataset in zip(places, datasets, strict=True):
        for name, split in dataset.splits.items():
            part = find_part(place, places) if are_files else name
            parts.setdefault(part, []).append((place, split))
    return {name: join_splits(each, options.id_prefix) for name, each in parts.items()}


def _with_source(name: str, splits: Mapping[str, Split], options: ReadOptions) -> dict[str, Split]:
    """Add the name of a file or folder to the features of its documents, if that is asked for."""
    if not options.source_feature:
        return dict(splits)

    def read(split: Split, bad_rows: BadRows) -> Iterator[Example]:
        for example in split.read(bad_rows):
            yield replace(example, features=(*example.features, f"source:{name}"))

    return {part: Split(split.files, partial(read, split)) for part, split in splits.items()}


def _prefix_format(place: str) -> Format | None:
    """Return the format whose prefix an address has, if any."""
    prefixed = (each for each in READERS.values() if each.prefix)
    return next((each for each in prefixed if place.startswith(each.prefix)), None)


def _find_splits(
    path: Path, options: ReadOptions, formats: Mapping[str, Format]
) -> dict[str, Split]:
    """Collect the splits of every format; raise if two formats hold the same split."""
    found: dict[str, tuple[str, Split]] = {}
    for reader, format_ in formats.items():
        for name, split in format_.find(path, options).items():
            if name in found:
                other, first = found[name]
                raise DataError(
                    f"{path} holds the split '{name}' twice: {first.files[0].name} ({other}) and "
                    f"{split.files[0].name} ({reader}). Remove one, or choose with --format."
                )
            if options.known_fields and not format_.has_fields:
                raise _no_fields(str(path), reader)
            found[name] = (reader, split)
    return {name: split for name, (_, split) in found.items()}


def _no_fields(place: str, reader: str) -> DataError:
    return DataError(
        f"{place} ({reader}) has no fields for known labels. Give a JSON Lines, CSV or Parquet "
        "file: setrnn data convert makes one."
    )


def _check_place(path: Path, place: str) -> None:
    """Raise if a path is not a file or a folder of documents."""
    if not place or "\0" in place:
        raise DataError(
            f"'{printable(place)}' is not the name of a file. Give a file, a folder or a dataset."
        )
    if is_prepared(path):
        raise DataError(
            f"{path} is a prepared folder: it holds numbers, not documents. Use it with train and "
            "evaluate; convert and split need the data that it was made from."
        )
    if path.is_file() or path.is_dir():
        return
    if path.exists():
        raise DataError(f"{path} is neither a file nor a folder. Save the documents to a file.")
    if not path.parent.is_dir():
        raise DataError(f"{path} does not exist: there is no folder {path.parent}. Check the path.")
    names = [sibling.name for sibling in path.parent.iterdir()]
    if path.name == place:
        names.append(EMBEDDED)
    close = difflib.get_close_matches(path.name, names, n=1)
    advice = f"Did you mean '{printable(close[0])}'?" if close else "Check the name."
    raise DataError(f"{path} does not exist. {advice}")


def _nothing_found(path: Path, reader: str | None) -> DataError:
    if reader:
        return DataError(f"{path} holds nothing in the format '{reader}'. Leave out --format.")
    files = [path] if path.is_file() else sorted(path.iterdir())
    sheets = [file for file in files if file.suffix.lower() in SPREADSHEETS]
    if sheets:
        return DataError(
            f"{sheets[0]} is a spreadsheet. Save its sheet as CSV and give that file: in Excel, "
            "File > Save As > CSV UTF-8; in LibreOffice, File > Save As > Text CSV; in pandas, "
            'pd.read_excel(FILE).to_csv("documents.csv", index=False).'
        )
    if path.is_file():
        with_suffix = {name: each.suffixes for name, each in READERS.items() if each.suffixes}
        return DataError(
            f"{path} has no known suffix ({', '.join(chain(*with_suffix.values()))}). Rename it, "
            f"or name its format with --format: {', '.join(with_suffix)}."
        )
    suffixes = chain(*(each.suffixes for each in READERS.values() if not each.fixed_names))
    fixed_names = [each.fixed_names for each in READERS.values() if each.fixed_names]
    return DataError(
        f"{path} holds no documents: looked for train, valid and test with "
        f"{', '.join(suffixes)}, and for {', '.join(fixed_names)}. Add train.jsonl."
    )
