"""Find the prepared form of any data by a hash of its content and settings, or make it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from setrnn.config import WORDS, TextSettings, settings_hash, to_dict
from setrnn.data.disk import (
    file_hash,
    locked_after,
    recovered,
    remove_stale_lock,
    temporary_folder,
)
from setrnn.data.example import Example
from setrnn.data.prepared import FORMAT, UNLABELLED, Prepared, is_prepared
from setrnn.data.preparing import BATCH, prepare
from setrnn.data.read import EMBEDDED, BadRows, Dataset, ReadOptions, Split, open_dataset
from setrnn.data.read.dataset import join_splits
from setrnn.data.read.lines import file_errors
from setrnn.data.read.reader import OnBadRow
from setrnn.data.splits import LEAST_VALID, MOST_SHARE, SEED, VALID_SHARE, TrainCut, with_valid
from setrnn.data.streaming import batched
from setrnn.data.text.languages import MOST_TEXTS, read_stop_words, settle_language
from setrnn.data.text.subwords import pretrained_encoder
from setrnn.errors import DataError
from setrnn.progress import OnProgress, count_up, ignore_progress, log

FILES_LOOKED_AT = 16  # to find the language of texts
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
        dataset = self._open_data()
        if not self.unlabelled:
            return dataset
        splits = {**dataset.splits, UNLABELLED: self._open_unlabelled()}
        return replace(dataset, splits=splits)

    def _open_unlabelled(self) -> Split:
        """Join the files of texts without labels; labels that they have are not read."""
        options = replace(self.options, require_labels=False)
        parts = [
            part
            for file in self.unlabelled
            for part in open_dataset(file, options, self.reader).splits.values()
        ]
        if not all(part.files for part in parts):
            raise DataError("Texts without labels must be in files. Write them to a .jsonl file.")

        return join_splits([(part.files[0], _without_labels(part)) for part in parts], "none")

    def _open_data(self) -> Dataset:
        dataset = open_dataset(self.places, self.options, self.reader)
        if self.valid is None:
            return with_valid(dataset) if self.cut_valid else dataset
        valid = open_dataset(self.valid, self.options, self.reader)
        if len(valid.splits) != 1:
            raise DataError(f"{self.valid} must be one file: it holds {', '.join(valid.splits)}.")
        (split,) = valid.splits.values()
        return Dataset(dataset.name, dataset.place, {**dataset.splits, "valid": split})


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
    """Return the prepared form of a DATA argument; make it if it does not exist.

    If another process is making it, wait and open what that process made: a folder that is
    complete is never replaced, since others may be reading it.

    Args:
        source: a prepared folder, or any data.
        settings: how texts become words.
        folder: the folder of prepared folders; the cache if not given.
        on_progress: called with the progress and with notes for the user.
    """
    place = source.prepared_folder
    if place is not None:
        if source.valid is not None:
            raise DataError(f"{place} is prepared already: give --valid with the data itself.")
        if source.unlabelled:
            raise DataError(
                f"{place} is prepared already: give --unlabelled to setrnn data prepare."
            )
        if source.options.hierarchy is not None:
            raise DataError(
                f"{place} is prepared already: give --hierarchy to setrnn data prepare."
            )
        return Prepared(place)
    dataset = replace(source, cut_valid=False).open()
    dataset.require("train")
    is_cut = source.cut_valid and "valid" not in dataset.splits
    dataset = replace(dataset, valid_is_cut=is_cut)
    stamps = _stamp_files(dataset)  # before the files are hashed, so that later changes are found
    target = prepared_path(source, dataset, settings, folder)
    if not is_prepared(recovered(target)):
        with locked_after(target, lambda busy: log.info(busy)):
            if not is_prepared(recovered(target)):
                return _prepare(source, dataset, stamps, settings, target, on_progress)
    else:
        remove_stale_lock(target)
    return Prepared(target)


def _prepare(
    source: Source,
    dataset: Dataset,
    stamps: Mapping[Path, tuple[int, int]],
    settings: TextSettings,
    target: Path,
    on_progress: OnProgress,
) -> Prepared:
    """Read the data once, into files beside `target`, and prepare these."""
    report = count_up("reading", on_progress)
    with temporary_folder(target, is_private=True) as folder:
        copies = {
            name: CopiedSplit(dataset, name, folder / name, source.on_bad_row, report)
            for name in dataset.splits
        }
        if changed := next((f for f, at in _stamp_files(dataset).items() if stamps[f] != at), None):
            raise DataError(
                f"{changed} has changed while it was being prepared. Run the same command again."
            )
        streams = {name: copy.read for name, copy in copies.items()}
        if dataset.valid_is_cut:
            parts = copies["train"].cut.cut_valid()
            cut = {
                name: partial(copies["train"].read, [each == part for each in parts])
                for part, name in enumerate(("train", "valid"))
            }
            streams = {**cut, **{name: each for name, each in streams.items() if name != "train"}}
        train = dataset.splits["train"]
        first = (
            each.text for each in copies["train"].read()
        )  # of one file: it is not opened again
        texts = _first_texts(train) if train.pieces else islice(first, MOST_TEXTS)
        settings, look = settle_language(list(texts), settings)
        about = {
            "language": look.describe(),
            "n_skipped_rows": {
                name: copies[name].bad_rows.n_skipped if name in copies else 0 for name in streams
            },
            **({"valid_is_cut": True} if dataset.valid_is_cut else {}),
        }
        prepared = prepare(
            streams,
            target,
            dataset.name,
            settings,
            {"data": dataset.name, "synthetic": source.places == (EMBEDDED,)},
            on_progress,
            hierarchy=source.options.hierarchy,
            about=about,
        )
    for text in dict.fromkeys(chain(*(each.bad_rows.notes for each in copies.values()))):
        log.info(text)
    return prepared


class CopiedSplit:
    """A split that is parsed once, and kept in a file that is fast to read again."""

    def __init__(
        self,
        dataset: Dataset,
        name: str,
        file: Path,
        on_bad_row: OnBadRow,
        on_documents: Callable[[int], None],
    ) -> None:
        self.bad_rows, self.cut = BadRows(on_bad_row), TrainCut(dataset.place)
        self._file = file
        with file.open("w", encoding="ascii") as stream:
            for batch in batched(dataset.splits[name].read(self.bad_rows), BATCH):
                if dataset.valid_is_cut and name == "train":
                    for example in batch:
                        self.cut.add(example)
                stream.write(json.dumps([_pack(each) for each in batch]) + "\n")
                on_documents(len(batch))

    def read(self, is_kept: Sequence[bool] | None = None) -> Iterator[Example]:
        """Yield the documents, or those that are kept."""
        start = 0
        with self._file.open(encoding="ascii") as stream:
            for line in stream:
                batch = json.loads(line)
                for row, (id_, text, labels, features, unknown, complete) in enumerate(
                    batch, start
                ):
                    if is_kept is None or is_kept[row]:
                        more = {"unknown": unknown, "complete": complete}
                        yield Example(id_, text, labels, features, **more)
                start += len(batch)


def _pack(example: Example) -> tuple[Any, ...]:
    each = example
    return each.id, each.text, each.labels, each.features, each.unknown, each.complete


def _stamp_files(dataset: Dataset) -> dict[Path, tuple[int, int]]:
    """Return the size and the time of all files."""
    stamps = {}
    for file in chain.from_iterable(split.files for split in dataset.splits.values()):
        with file_errors(file):
            found = file.stat()
        stamps[file] = (found.st_size, found.st_mtime_ns)
    return stamps


def sample_texts(source: Source) -> Iterator[str]:
    """Yield some texts of train to find their language: the first ones of files evenly chosen."""
    splits = replace(source, cut_valid=False).open().splits
    yield from _first_texts(splits["train" if "train" in splits else next(iter(splits))])


def _first_texts(split: Split) -> Iterator[str]:
    pieces = split.pieces or (split,)
    chosen = pieces[:: max(len(pieces) // FILES_LOOKED_AT, 1)]
    for piece in chosen:
        examples = piece.read(BadRows("skip"))
        yield from (each.text for each in islice(examples, MOST_TEXTS // len(chosen)))


def prepared_path(
    source: Source, dataset: Dataset, settings: TextSettings, folder: Path | None = None
) -> Path:
    """Return the folder of the prepared form: its name has a hash of content and settings."""
    content = {
        name: [_content_hash(file) for file in split.files] or list(source.places)
        for name, split in dataset.splits.items()
        if not (name == "valid" and dataset.valid_is_cut)
    }
    options = replace(source.options, check_known=None)  # a function has no hash
    # Options that are not given, such as fields of known labels, do not count.
    given = {name: value for name, value in to_dict(options).items() if value is not None}
    reading: list[object] = [given, source.reader, source.on_bad_row]
    if any(len(split.files) > 1 for split in dataset.splits.values()):
        # The names of several files may become a part of ids.
        reading.append([file.name for split in dataset.splits.values() for file in split.files])
    if dataset.valid_is_cut:
        shares = {"valid_share": VALID_SHARE, "least": LEAST_VALID, "most": MOST_SHARE}
        reading.append({**shares, "seed": SEED})
    # their content, not a file's name
    stop_words = sorted(read_stop_words(settings.stop_words, settings.language))
    if settings.tokenizer != WORDS:  # its content, not the name of its folder
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


def _without_labels(split: Split) -> Split:
    def read(bad_rows: BadRows) -> Iterator[Example]:
        for example in split.read(bad_rows):
            yield replace(example, labels=(), unknown=(), complete=True)

    return Split(split.files, read)


def _content_hash(file: Path) -> str:
    with file_errors(file):
        return file_hash(file)
