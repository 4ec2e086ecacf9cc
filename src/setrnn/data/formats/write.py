"""Write documents to a file or a folder, completely or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from setrnn.data.example import Example
from setrnn.data.folders import explain_failed_write, whole_file, whole_folder
from setrnn.data.formats.label_studio import make_tasks, write_tasks
from setrnn.data.formats.printing import shown
from setrnn.errors import ConfigError, DataError

# A Parquet row group ends at either limit.
_GROUP_ROWS = 8192
_GROUP_CHARACTERS = 64_000_000


def write_examples(examples: Iterable[Example], path: str | Path) -> int:
    r"""Stream documents into a file in the format of its suffix; return their number.

    The file appears under its name when it is complete; after a failure nothing is left behind,
    and an older file is unchanged. The same documents give the same bytes.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "news.jsonl"
        >>> write_examples([Example("1", "Rates rise", ("economy",))], file)
        1
        >>> file.read_text()
        '{"id": "1", "text": "Rates rise", "labels": ["economy"]}\n'
    """
    path = Path(path)
    suffix = next((each for each in WRITERS if path.name.lower().endswith(each)), None)
    if suffix is None:
        known = ", ".join(WRITERS)
        raise DataError(f"{path} has no known suffix. End its name in one of: {known}.")
    with explain_failed_write(path, " Choose another path."), whole_file(path) as stream:
        return WRITERS[suffix](examples, stream)


def write_folder(
    splits: Mapping[str, Iterable[Example]], folder: str | Path, suffix: str = ".jsonl"
) -> dict[str, int]:
    """Stream splits into a new folder, one file per split; return the number of documents of each.

    Example:
        >>> import tempfile
        >>> splits = {"train": [Example("1", "a", ("x",))], "test": [Example("2", "b")]}
        >>> write_folder(splits, Path(tempfile.mkdtemp()) / "data")
        {'train': 1, 'test': 1}
    """
    folder = Path(folder)
    if suffix not in WRITERS:
        raise ConfigError(f"The suffix must be one of {', '.join(WRITERS)}, got '{suffix}'.")
    if folder.exists():
        raise DataError(f"{folder} exists already. Remove it, or name another folder.")
    with whole_folder(folder) as temporary:
        return {
            name: write_examples(examples, temporary / f"{name}{suffix}")
            for name, examples in splits.items()
        }


def _write_jsonl(examples: Iterable[Example], stream: BinaryIO) -> int:
    n_written = 0
    for example in examples:
        row: dict[str, object] = {
            "id": example.id,
            "text": example.text,
            "labels": example.labels,
        }
        if example.features:
            row["features"] = example.features
        if example.unknown:
            row["unknown"] = example.unknown
        if not example.complete:
            row["complete"] = False
        try:
            line = json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise _not_utf8([example]) from error
        stream.write(line + b"\n")
        n_written += 1
    return n_written


def _write_jsonl_gz(examples: Iterable[Example], stream: BinaryIO) -> int:
    # Without a name and a time in the header, the same documents give the same bytes.
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as packed:
        return _write_jsonl(examples, packed)  # type: ignore[arg-type]


def _write_parquet(examples: Iterable[Example], stream: BinaryIO) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    strings = pa.list_(pa.string())
    schema = pa.schema(
        {"id": pa.string(), "text": pa.string(), "labels": strings, "features": strings}
        | {"unknown": strings, "complete": pa.bool_()}
    )
    n_written = 0
    with pq.ParquetWriter(stream, schema) as writer:
        for group in _groups(examples):
            columns = {name: [getattr(example, name) for example in group] for name in schema.names}
            try:
                table = pa.table(columns, schema=schema)
            except UnicodeEncodeError as error:
                raise _not_utf8(group) from error
            writer.write_table(table)
            n_written += len(group)
    return n_written


def _write_tasks(examples: Iterable[Example], stream: BinaryIO) -> int:
    """Write tasks of Label Studio, annotated with the labels."""
    last: list[Example] = []

    def watch() -> Iterator[Example]:
        for example in examples:
            last[:] = [example]
            yield example

    try:
        return write_tasks(make_tasks(watch()), stream)
    except UnicodeEncodeError as error:
        raise _not_utf8(last) from error


def _groups(examples: Iterable[Example]) -> Iterator[list[Example]]:
    group: list[Example] = []
    n_characters = 0
    for example in examples:
        group.append(example)
        n_characters += len(example.text)
        if len(group) == _GROUP_ROWS or n_characters >= _GROUP_CHARACTERS:
            yield group
            group, n_characters = [], 0
    if group:
        yield group


def _not_utf8(group: list[Example]) -> DataError:
    """Return the error that names the document that cannot be written."""
    for example in group:
        try:
            every = (*example.labels, *example.features, *example.unknown)
            "".join((example.id, example.text, *every)).encode()
        except UnicodeEncodeError:
            return DataError(
                f"Document {shown(example.id)} holds half a character (a lone surrogate), which "
                "UTF-8 cannot write. Remove it."
            )
    raise AssertionError("every document can be written")


WRITERS: dict[str, Callable[[Iterable[Example], BinaryIO], int]] = {
    ".jsonl": _write_jsonl,
    ".jsonl.gz": _write_jsonl_gz,
    ".parquet": _write_parquet,
    ".json": _write_tasks,
}
