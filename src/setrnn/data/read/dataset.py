"""A dataset: the splits that files, folders and addresses hold, joined and ready to be read."""

from __future__ import annotations

import difflib
import glob
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from setrnn.data.disk import private_folder
from setrnn.data.example import Example, rename_labels, text_hash
from setrnn.data.prepared import is_prepared
from setrnn.data.read import corpora, delimited, excel, huggingface, jsonl, label_studio, parquet
from setrnn.data.read.lines import decode, file_errors, file_stem, numbered_lines
from setrnn.data.read.reader import SPLIT_NAMES, BadRows, Format, ReadOptions, Split
from setrnn.data.read.rows import read_rows
from setrnn.errors import DataError, count_of, list_some, nearest_name, printable

# Each is tried on a file or folder, in this order.
READERS: dict[str, Format] = {
    "jsonl": jsonl.FORMAT,
    "csv": delimited.FORMAT,
    "excel": excel.FORMAT,
    "parquet": parquet.FORMAT,
    "aapd": corpora.AAPD,
    "rcv1": corpora.RCV1,
    "reuters": corpora.REUTERS,
    "label-studio": label_studio.FORMAT,
    "huggingface": huggingface.FORMAT,
}

# A synthetic newsroom, which `tools/make_newsroom.py` of the repository writes.
EMBEDDED = "newsroom"
EMBEDDED_FOLDER = Path(__file__).parents[1] / EMBEDDED
STDIN = "-"
N_SHOWN = 5  # files in a note
SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")  # which are saved as CSV first


@dataclass(frozen=True)
class Dataset:
    """The splits of a dataset, each ready to be streamed."""

    name: str
    place: str
    splits: dict[str, Split]

    def require(self, split: str) -> Split:
        """Return a split; raise DataError with the splits that exist if it is missing."""
        if split in self.splits:
            return self.splits[split]
        raise DataError(
            f"{self.place} has no '{split}' part: found {', '.join(sorted(self.splits))}. Give a "
            f"folder that has {split}.jsonl (or .csv, .parquet) too, or name another part."
        )

    def choose(self, split: str | None, default: str = "test") -> Split:
        """Return a split; if none is named, the only one or `default`."""
        return self.require(split or choose_split(list(self.splits), default))


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
        >>> from setrnn.data.read import BadRows
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
    if n_more := len(datasets) - 1:
        name, place = f"{dataset.name}+{n_more}", f"{dataset.place} and {n_more} more"
        dataset = Dataset(name, place, _join_datasets(datasets))
    finished = {
        name: _finish(split, f"The '{name}' part of {dataset.place}", options)
        for name, split in dataset.splits.items()
    }
    return replace(dataset, splits=finished)


@contextmanager
def open_standard_input(
    stream: BinaryIO, options: ReadOptions, reader: str | None = None
) -> Iterator[Split]:
    """Yield the documents of a stream, which is copied to a temporary file first.

    Without a format, each line is a JSON object if the first one begins with {, or else a text.
    """
    with private_folder() as folder:
        path = folder / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
        if reader is None:
            lines = numbered_lines(path, options.max_row_bytes, options.encoding)
            first = next((line for _, line in lines if line.strip()), b"")
            reader = "jsonl" if first.lstrip().startswith(b"{") else None
        if reader is None:
            yield _finish(Split((path,), partial(_read_texts, path, options)), "stdin", options)
        else:
            yield open_dataset(path, options, reader).require("train")


def _read_texts(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the lines of a file as texts."""

    def make(line: bytes, number: int) -> Example | None:
        text = decode(line, options.max_row_bytes).strip()
        return Example(f"{path.name}-{number}", text) if text else None

    lines = numbered_lines(path, options.max_row_bytes, options.encoding)
    return read_rows(lines, make, bad_rows, f"{path.name} line")


def expand_places(places: Iterable[str | Path]) -> list[str | Path]:
    """Replace each glob, such as "exports/*.csv", by the files that it matches, in their order."""
    expanded: list[str | Path] = []
    for place in places:
        if not any(each in str(place) for each in "*?[") or Path(place).exists():
            expanded.append(place)
            continue
        found = sorted(glob.glob(str(place), recursive=True))  # noqa: PTH207 (absolute ones too)
        if not found:
            raise DataError(f"No file matches {printable(str(place))}. Check the pattern.")
        expanded += found
    if not expanded:
        raise DataError("There is no data to read. Name a file, a folder or a dataset.")
    path, n_times = Counter(Path(place).absolute() for place in expanded).most_common(1)[0]
    if n_times > 1:
        raise DataError(f"{printable(str(path))} is given twice. Leave out one.")
    return expanded


def _open_place(data: str | Path, options: ReadOptions, reader: str | None) -> Dataset:
    """Find the splits of one file, folder or address."""
    place, path = str(data), Path(data)
    if data == EMBEDDED and reader is None:
        return Dataset(EMBEDDED, place, _find_splits(EMBEDDED_FOLDER, ReadOptions(), reader))
    for each in READERS.values():
        if each.prefix and place.startswith(each.prefix):
            name = place.removeprefix(each.prefix).partition(":")[0]
            return Dataset(name, place, each.find(path, options))
    with file_errors(path):
        _check_place(path, place)
        splits = _find_splits(path, options, reader)
        tables = _find_tables(path, reader) if path.is_dir() else []
        if not splits and not tables:
            raise _nothing_found(path, reader)
        if not splits:
            found = [_open_place(table, options, reader) for table in tables]
            return Dataset(path.resolve().name, place, _join_datasets(found))
        used = {file for split in splits.values() for file in split.files}
        if unread := [printable(table.name) for table in tables if table not in used]:
            note = (
                f"Only {', '.join(splits)} of {path} are read, not {list_some(unread, N_SHOWN)}. "
                "To read other files too, name them."
            )
            splits = {part: replace(split, notes=(note,)) for part, split in splits.items()}
        return Dataset(path.resolve().name if path.is_dir() else file_stem(path), place, splits)


def _check_place(path: Path, place: str) -> None:
    """Raise if a path, which the user wrote as `place`, is not a file or a folder of documents."""
    if not place or "\0" in place:
        raise DataError(
            f"'{printable(place)}' is not the name of a file. Give a file, a folder or a dataset."
        )
    if is_prepared(path):
        raise DataError(
            f"{path} is a prepared folder: it holds numbers, not documents. Use it with train and "
            "evaluate; other commands need the data that it was made from."
        )
    if path.is_file() or path.is_dir():
        return
    if path.exists():
        raise DataError(f"{path} is neither a file nor a folder. Save the documents to a file.")
    if not path.parent.is_dir():
        raise DataError(f"{path} does not exist: there is no folder {path.parent}. Check the path.")
    names = [*(EMBEDDED,) * (path.name == place), *(each.name for each in path.parent.iterdir())]
    close = difflib.get_close_matches(path.name, names, n=1)
    advice = f"Did you mean '{printable(close[0])}'?" if close else "Check the name."
    raise DataError(f"{path} does not exist. {advice}")


def _find_splits(path: Path, options: ReadOptions, reader: str | None) -> dict[str, Split]:
    """Collect the splits of every format; raise if two formats hold the same split."""
    if reader is not None:
        return READERS[reader].find(path, options)
    found: dict[str, Split] = {}
    for format_ in READERS.values():
        if path.is_file() and not format_.fits(path):
            continue
        for part, split in format_.find(path, options).items():
            if part in found:
                raise DataError(
                    f"{path} holds the split '{part}' twice: {found[part].files[0].name} and "
                    f"{split.files[0].name}. Remove one, or choose with --format."
                )
            found[part] = split
    return found


def _find_tables(folder: Path, reader: str | None) -> list[Path]:
    """Return the files of a folder that a format reads whatever their names; not hidden ones."""
    formats = [READERS[reader]] if reader else READERS.values()
    return sorted(
        path
        for path in folder.iterdir()
        if any(each.fits(path) and not each.fixed_names for each in formats)
        and path.name[0] != "."
        and path.is_file()
    )


def _join_datasets(datasets: Sequence[Dataset]) -> dict[str, Split]:
    """Join the splits of several places by their names.

    Files called train, valid and test are these splits if train is among them; other single files
    are joined into train.
    """
    places = [Path(dataset.place) for dataset in datasets]
    stems, are_files = [*map(file_stem, places)], all(place.is_file() for place in places)
    are_parts = "train" in stems and all(stem in SPLIT_NAMES for stem in stems)
    parts: dict[str, list[Split]] = {}
    for stem, dataset in zip(stems, datasets, strict=True):
        for name, split in dataset.splits.items():
            if are_files:
                name = SPLIT_NAMES[stem] if are_parts else "train"
            parts.setdefault(name, []).append(split)
    return {name: join_splits(splits) for name, splits in parts.items()}


def join_splits(splits: Sequence[Split]) -> Split:
    """Return a split of the documents of several, one after the other."""
    files = tuple(file for split in splits for file in split.files)
    notes = tuple(note for split in splits for note in split.notes)
    return Split(files, lambda rows: chain.from_iterable(s.read(rows) for s in splits), notes)


def _merge_duplicates(examples: Iterable[Example]) -> list[Example]:
    """Return one document per text, the first, with the labels of all; keeps texts in memory.

    Empty texts are not compared.
    """
    kept: dict[object, Example] = {}
    for number, each in enumerate(examples):
        key = text_hash(each.text) if each.text.strip() else number
        if (first := kept.setdefault(key, each)) is not each:
            labels = first.labels + each.labels
            kept[key] = replace(
                first,
                labels=labels,
                features=first.features + each.features,
                unknown=tuple(u for u in first.unknown + each.unknown if u not in labels),
                complete=first.complete and each.complete,
            )
    return list(kept.values())


def _finish(split: Split, name: str, options: ReadOptions) -> Split:
    """Rename and close the labels of a split; raise DataError if it yields no document."""
    if split.files:
        n_more = len(split.files) - 1
        name = split.files[0].name + (f" (and {n_more} more)" if n_more else "")

    def read(bad_rows: BadRows) -> Iterator[Example]:
        for note in split.notes:
            bad_rows.note(note)
        n_before, n_read, n_blank = bad_rows.n_skipped, 0, -bad_rows.n_unlabelled
        examples = split.read(bad_rows)
        if (label_map := options.label_map) is not None:
            examples = (
                each.relabel(
                    rename_labels(each.labels, label_map), rename_labels(each.unknown, label_map)
                )
                for each in examples
            )
        if options.merge_duplicates and options.require_labels:
            every = list(examples)
            merged = _merge_duplicates(every)
            if n_fewer := len(every) - len(merged):
                texts = count_of(n_fewer, "document")
                bad_rows.note(f"{name}: {texts} merged into others with the same text.")
            examples = iter(merged)
        if options.hierarchy is not None:
            examples = options.hierarchy.close_examples(examples)
        for example in examples:
            n_read += 1
            yield example
        if (n_blank := n_blank + bad_rows.n_unlabelled) and options.unlabelled_rows == "stop":
            raise _unlabelled(name, n_blank, n_blank + n_read, bad_rows.first_unlabelled)
        if n_blank:
            bad_rows.note(f"{name}: {count_of(n_blank, 'row')} without labels left out.")
        if n_read:
            return
        if not (n_bad := bad_rows.n_skipped - n_before):
            raise DataError(f"{name} holds no documents. Add at least one row.")
        reason = "".join(f" First: {each}" for each in bad_rows.first[n_before:][:1])
        raise DataError(
            f"{name} holds no documents that can be read: {n_bad} rows skipped.{reason}"
        )

    return replace(split, read=read)


def _unlabelled(name: str, n_blank: int, n_rows: int, first: str) -> DataError:
    return DataError(
        f"{name}: {n_blank:,} of {n_rows:,} rows have no labels, first {printable(first)}. If "
        "they are not labelled yet, leave them out with --unlabelled-rows skip; if no label "
        "applies to them, give --unlabelled-rows empty."
    )


def _nothing_found(path: Path, reader: str | None) -> DataError:
    if reader:
        return DataError(f"{path} holds nothing in the format '{reader}'. Leave out --format.")
    files = [path] if path.is_file() else sorted(path.iterdir())
    if sheet := next((file for file in files if file.suffix.lower() in SPREADSHEETS), None):
        return DataError(
            f"{sheet} is a spreadsheet. Save its sheet as .xlsx or CSV and give that file: File > "
            "Save As."
        )
    if path.is_file():
        with_suffix = {name: each.suffixes for name, each in READERS.items() if each.suffixes}
        return DataError(
            f"{path} has no known suffix ({', '.join(chain(*with_suffix.values()))}). Rename it, "
            f"or name its format with --format: {', '.join(with_suffix)}."
        )
    fixed_names = [each.fixed_names for each in READERS.values() if each.fixed_names]
    suffixes = chain(*(each.suffixes for each in READERS.values() if not each.fixed_names))
    return DataError(
        f"{path} holds no documents: looked for train, valid and test with "
        f"{', '.join(suffixes)}, and for {', '.join(fixed_names)}. "
        "Add train.jsonl."
    )
