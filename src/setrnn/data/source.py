"""What to read, and how: a DATA argument as a `Source`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from setrnn.data.disk import recovered
from setrnn.data.example import Example
from setrnn.data.prepared import UNLABELLED, is_prepared
from setrnn.data.read import EMBEDDED, BadRows, Dataset, ReadOptions, Split, open_dataset
from setrnn.data.read.dataset import join_splits
from setrnn.data.read.lines import file_errors
from setrnn.data.read.reader import COLUMNS, COLUMNS_FILE, OnBadRow
from setrnn.data.splits import with_valid
from setrnn.errors import DataError


@dataclass(frozen=True)
class Source:
    """A DATA argument, and how to read it.

    Attributes:
        data: a file, a glob, a folder, an address or "newsroom", or several of them.
        options: how to read rows.
        reader: the only format to look for; None for any.
        valid: a file that becomes the valid split.
        on_bad_row: what to do with a row that cannot be read.
        cut_valid: whether to cut a valid split from train, if the data has none.
        unlabelled: files of texts, which become the split "unlabelled".

    Example:
        >>> import setrnn
        >>> news = setrnn.Source("news.csv", setrnn.ReadOptions(text_field="title,body"))
        >>> news.on_bad_row
        'stop'
    """

    data: str | Sequence[str]
    options: ReadOptions = field(default_factory=ReadOptions)
    reader: str | None = None
    valid: Path | None = None
    on_bad_row: OnBadRow = "stop"
    cut_valid: bool = False
    unlabelled: tuple[Path, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """The files, folders or addresses."""
        return (self.data,) if isinstance(self.data, str) else tuple(self.data)

    @property
    def prepared_folder(self) -> Path | None:
        """The folder, if the data is prepared already."""
        if len(self.places) != 1 or not is_prepared(recovered(Path(self.places[0]))):
            return None
        return Path(self.places[0])

    @property
    def columns(self) -> dict[str, str]:
        """The columns that differ from the usual ones, or that `data split` kept in the folder."""
        values = {name: getattr(self.options, name) for name in COLUMNS}
        given = {name: each for name, each in values.items() if each != getattr(ReadOptions, name)}
        kept = Path(self.places[0]) / COLUMNS_FILE
        if given or len(self.places) > 1 or not kept.is_file():
            return given
        with suppress(ValueError), file_errors(kept):
            return list_columns(json.loads(kept.read_bytes()))
        return {}

    def with_columns(self, columns: Mapping[str, str]) -> Source:
        """Return the source with other columns where its first document has them, or as it is.

        Example:
            >>> news = Source("newsroom")
            >>> news.with_columns({"text_field": "title,body"}) is news
            True
        """
        if self.places == (EMBEDDED,) or self.prepared_folder is not None:
            return self
        options = self.options
        least = {*COLUMNS} - {"id_field", "features_field"}  # which the data need not have
        wanted = {n: c for n, c in columns.items() if options.require_labels or n != "labels_field"}
        for names in ({*COLUMNS}, least):
            chosen: dict[str, Any] = {n: wanted[n] for n in wanted if n in names}
            found = replace(self, options=replace(options, **chosen))
            with suppress(DataError):
                quick = replace(found.options, merge_duplicates=False)  # reads no more than one
                parts = replace(found, options=quick).open().splits
                next(next(iter(parts.values())).read(BadRows()))
                return found if chosen else self
        return self

    def __str__(self) -> str:
        first, *others = self.places
        return f"{first} and {len(others)} more" if others else first

    def open(self) -> Dataset:
        """Find the splits; read nothing yet."""
        dataset = open_dataset(self.places, self.options, self.reader)
        splits = dict(dataset.splits)
        if self.valid is not None:
            found = open_dataset(self.valid, self.options, self.reader).splits
            if len(found) != 1:
                raise DataError(f"{self.valid} must be one file: it holds {', '.join(found)}.")
            (splits["valid"],) = found.values()
        if self.unlabelled:
            splits[UNLABELLED] = self._open_unlabelled()
        dataset = replace(dataset, splits=splits)
        return with_valid(dataset) if self.cut_valid else dataset

    def _open_unlabelled(self) -> Split:
        """Join the files of texts without labels; labels that they have are not read."""
        options = replace(self.options, require_labels=False)
        found = open_dataset(self.unlabelled, options, self.reader)
        joined = join_splits([*found.splits.values()])
        if not joined.files:
            raise DataError("Texts without labels must be in files. Write them to a .jsonl file.")

        def read(bad_rows: BadRows) -> Iterator[Example]:
            for example in joined.read(bad_rows):
                yield replace(example, labels=(), unknown=(), complete=True)

        return replace(joined, read=read)


def list_columns(values: object) -> dict[str, str]:
    """Return the columns of data that a file describes; anything else is left out."""
    found = values.items() if isinstance(values, dict) else ()
    return {name: str(value) for name, value in found if name in COLUMNS and value}


def read_source(data: object) -> Source | None:
    """Return a path, several paths or a Source as a Source; None for anything else."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        return Source(str(data))
    if isinstance(data, list | tuple) and data and all(isinstance(e, str | Path) for e in data):
        return Source(tuple(map(str, data)))
    return None
