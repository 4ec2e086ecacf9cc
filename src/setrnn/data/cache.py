"""Find the prepared form of any data by a hash of its content and settings, or make it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from setrnn.config import WORDS, TextSettings, settings_hash, to_dict
from setrnn.data.disk import (
    file_hash,
    locked,
    recovered,
    remove_folder,
    remove_leftovers,
    temporary_folder,
    was_left,
)
from setrnn.data.example import Example
from setrnn.data.prepared import FORMAT, UNLABELLED, Prepared, is_prepared
from setrnn.data.preparing import prepare
from setrnn.data.read import (
    EMBEDDED,
    BadRows,
    Dataset,
    ReadOptions,
    Split,
    open_dataset,
    write_examples,
)
from setrnn.data.read.dataset import join_splits
from setrnn.data.read.lines import file_errors
from setrnn.data.read.reader import OnBadRow
from setrnn.data.splits import MAX_SHARE, MIN_VALID, SEED, VALID_SHARE, with_valid
from setrnn.data.text.languages import read_stop_words
from setrnn.data.text.subwords import pretrained_encoder
from setrnn.errors import BusyError, DataError
from setrnn.progress import OnProgress, ignore_progress, log, watch

CACHE_VARIABLE = "SETRNN_CACHE"


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


def read_source(data: object) -> Source | None:
    """Return a path, several paths or a Source as a Source; None for anything else."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        return Source(str(data))
    if isinstance(data, list | tuple) and data and all(isinstance(e, str | Path) for e in data):
        return Source(tuple(map(str, data)))
    return None


def open_prepared(
    source: Source,
    settings: TextSettings,
    folder: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Prepared:
    """Return the prepared form of a DATA argument; make it in `folder` if it does not exist.

    Without `folder`, that is the cache. If another process is making it, wait and open what that
    process made: a folder that is complete is never replaced, since others may be reading it.
    """
    place = source.prepared_folder
    if place is not None:
        hierarchy = source.options.hierarchy
        given = {"valid": source.valid, "unlabelled": source.unlabelled, "hierarchy": hierarchy}
        for name, value in given.items():
            if value:
                raise DataError(f"{place} is prepared already: give --{name} with the data itself.")
        return Prepared(place)
    dataset = replace(source, cut_valid=False).open()
    dataset.require("train")
    target = prepared_path(source, dataset, settings, folder)
    if not is_prepared(recovered(target)) or was_left(target):
        with locked(target):
            remove_leftovers(target.parent)  # copies of texts
            if not is_prepared(recovered(target)):
                return _prepare(source, dataset, settings, target, on_progress)
    with suppress(OSError):  # it may be read-only
        os.utime(target)  # the last use, for list_cache
    return Prepared(target)


def _prepare(
    source: Source,
    dataset: Dataset,
    settings: TextSettings,
    target: Path,
    on_progress: OnProgress,
) -> Prepared:
    """Read the data once, into files beside `target`, and prepare these."""
    bad_rows = BadRows(source.on_bad_row)
    with temporary_folder(target, is_private=True) as folder:
        copies = dict[str, Split]()
        for name, split in dataset.splits.items():
            file = folder / f"{name}.jsonl"
            write_examples(watch(split.read(bad_rows), f"reading {name}", on_progress), file)
            options = ReadOptions(max_row_bytes=1 << 40)  # all rows were read once
            copies[name] = open_dataset(file, options).require("train")
        copied = replace(dataset, splits=copies)
        is_cut = source.cut_valid and "valid" not in copies
        splits = (with_valid(copied) if is_cut else copied).splits
        prepared = prepare(
            {name: partial(split.read, BadRows()) for name, split in splits.items()},
            target,
            dataset.name,
            settings,
            {
                "n_skipped_rows": bad_rows.n_skipped,
                "synthetic": source.places == (EMBEDDED,),
                "valid_is_cut": is_cut,
            },
            on_progress,
            hierarchy=source.options.hierarchy,
        )
    for text in bad_rows.notes:
        log.info(text)
    return prepared


def prepared_path(
    source: Source,
    dataset: Dataset,
    settings: TextSettings,
    folder: Path | None = None,
) -> Path:
    """Return the folder of the prepared form: its name has a hash of content and settings."""
    content = {
        name: [[file.name, _hash_content(file)] for file in split.files] or [list(source.places)]
        for name, split in dataset.splits.items()
    }
    options = replace(source.options, check_known=None)  # a function has no hash
    reading: list[object] = [to_dict(options), source.reader, source.on_bad_row]
    if source.cut_valid and "valid" not in dataset.splits:
        reading += [VALID_SHARE, MIN_VALID, MAX_SHARE, SEED]
    # The content of a list of stop words or a tokenizer counts, not the name of its file.
    stop_words = sorted(read_stop_words(settings.stop_words, settings.language))
    if settings.tokenizer != WORDS:
        tokenizer = pretrained_encoder(settings).tokenizer.to_str()
        settings = replace(settings, tokenizer=settings_hash(tokenizer))
    digest = settings_hash(FORMAT, content, reading, to_dict(settings), stop_words)
    return (folder or cache_folder()) / f"{dataset.name}-{digest}"


def cache_folder() -> Path:
    """Return the folder of prepared data: $SETRNN_CACHE, or the cache folder of the user."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "setrnn"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setrnn"


@dataclass(frozen=True)
class CachedData:
    """Prepared data in the cache, with the word vectors learned from it."""

    folder: Path
    n_documents: int | None  # None if it is damaged, or of another version
    n_vectors: int  # files of word vectors
    n_bytes: int  # of all files
    last_used: float  # seconds since 1970


def list_cache() -> list[CachedData]:
    """List the prepared data in the cache, what was used last first.

    Example:
        >>> import setrnn
        >>> prepared = setrnn.prepare("newsroom")
        >>> cached = setrnn.list_cache()[0]
        >>> cached.folder == prepared.folder, cached.n_documents
        (True, 6000)
    """
    found = []
    for folder in cache_folder().glob("[!.]*"):  # others are being written or removed
        if is_prepared(folder):
            n_documents = None
            with suppress(DataError):
                n_documents = sum(Prepared(folder).description["n_documents"].values())
            n_vectors = len([*folder.glob("*.npz")])
            n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            last_used = folder.stat().st_mtime
            found.append(CachedData(folder, n_documents, n_vectors, n_bytes, last_used))
    return sorted(found, key=lambda each: -each.last_used)


def clear_cache() -> list[CachedData]:
    """Remove the prepared data in the cache, and return what was removed.

    What another process is writing stays. Nothing else in the folder is touched.
    """
    removed = []
    for each in list_cache():
        try:
            with locked(each.folder, wait=False):
                remove_folder(each.folder)
            removed.append(each)
        except BusyError as busy:
            log.info(f"{busy} It is kept.")
    return removed


def _hash_content(file: Path) -> str:
    with file_errors(file):
        return file_hash(file)
