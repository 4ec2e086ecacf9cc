"""The word vectors kept in a prepared folder: found by the content of their source, and checked.

    word_vectors-HASH.npy    the vectors
    word_vectors-HASH.json   what they were made from, and the seal of the vectors; written last

HASH covers the settings and the content of the file of vectors, not its name or its date. The
description also names the file and how it looked, so that it need not be hashed again, nor exist:
a prepared folder may be carried to another machine without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

from setrnn.config import VectorSettings, settings_hash, to_dict
from setrnn.data.folders import file_hash, whole_file
from setrnn.data.seals import find_damage, seal_file
from setrnn.data.token_vectors import PACKAGES, list_files, missing_source
from setrnn.data.vector_files import Progress, Vectors, reading_errors
from setrnn.errors import DataError

FORMAT = 2  # raised when the same settings give other vectors
LEARNED = "word2vec"
PREFIX = "word_vectors-"

# The path, size, times and number on the disk of each file of a source, one after the other;
# files that look the same are the same.
Look = list[str | int]
CHANGED = 3  # where in a look the time of the last change is


@dataclass(frozen=True)
class KeptVectors:
    """The vectors of one source in a prepared folder; they need not have been made yet."""

    folder: Path
    made_from: Mapping[str, Any]  # the settings; the source is the hash of its content
    sources: Mapping[str, Look] = field(default_factory=dict)  # by name, as it was given

    @property
    def file(self) -> Path:
        """The file of the vectors."""
        return self.folder / f"{PREFIX}{settings_hash(FORMAT, self.made_from)}.npy"

    @property
    def exist(self) -> bool:
        """Whether the vectors have been made."""
        return self.file.is_file() and self._description.is_file()

    def save(self, vectors: Vectors) -> None:
        """Write the vectors, then their description."""
        if not _is_finite(vectors):
            raise DataError(
                "The word vectors hold numbers that are not finite. Give other vectors."
            )
        with whole_file(self.file) as stream:
            np.save(stream, vectors)
        self._describe(seal_file(self.file))

    def load(self, shape: tuple[int, int]) -> Vectors:
        """Map the vectors into memory, after checking that they are as they were written."""
        vectors = _load_checked(self.file)
        if vectors.shape != shape:
            raise DataError(f"{self.file} belongs to other data. {_again(self.file)}")
        return vectors

    def note_source(self) -> None:
        """Keep how the file of vectors looks now, if that is new; not where nothing is written."""
        known = _read_description(self._description)
        if known and not self.sources.items() <= known["sources"].items():
            with suppress(DataError):
                self._describe(known["file"], known["sources"])

    @property
    def _description(self) -> Path:
        return self.file.with_suffix(".json")

    def _describe(self, seal: Mapping[str, Any], sources: Mapping[str, Look] | None = None) -> None:
        values = {
            "made_from": dict(self.made_from),
            "sources": {**(sources or {}), **self.sources},
            "file": dict(seal),
        }
        text = json.dumps({**values, "seal": settings_hash(values)}, indent=2, ensure_ascii=False)
        with whole_file(self._description) as stream:
            stream.write(text.encode())


def find_vectors(folder: Path, settings: VectorSettings, on_progress: Progress) -> KeptVectors:
    """Find the vectors of the settings in a prepared folder, made or not.

    A file of vectors is hashed unless it looks as it did when it was hashed before. If there is
    no such file, the folder must hold the vectors that were made from a file of that name. The
    pretrained vectors that are added to learned ones are kept as those of a source of their own.
    """
    wanted = to_dict(settings)
    del wanted["pretrained"]
    if settings.source == LEARNED:
        return KeptVectors(folder, wanted)
    known = list(_read_descriptions(folder))
    file = Path(settings.source).expanduser()
    with reading_errors(file):
        if files := list_files(settings.source):
            look = look_of(files)
            hashes = (
                each["made_from"]["source"] for each in known if look in each["sources"].values()
            )
            content = next(hashes, None)
            if content is None:
                on_progress(f"hashing {file.name}", 0.0)
                content = "+".join(map(file_hash, files))
            made_from = {**wanted, "source": content}
            return KeptVectors(folder, made_from, {settings.source: look})
    fitting = {
        tuple(each["sources"][settings.source]): each["made_from"]
        for each in known
        if settings.source in each["sources"]
        and {**each["made_from"], "source": settings.source} == wanted
    }
    if not fitting:
        raise missing_source(settings.source)
    if len({path for path, *_ in fitting}) > 1:
        raise DataError(
            f"There is no file {file}, and {folder} holds the vectors of different files of that "
            "name. Give the file, or delete the vectors that are not wanted."
        )
    what = f"package {file}" if settings.source in PACKAGES else f"file {file}"
    on_progress(f"there is no {what}: its vectors in the prepared folder are used", 0.0)
    return KeptVectors(folder, fitting[max(fitting, key=_time_of_change)])


def _time_of_change(look: tuple[Any, ...]) -> int:
    return int(look[CHANGED])


def check_vectors(folder: Path) -> None:
    """Raise if vectors in a prepared folder are not as they were written."""
    for file in sorted(folder.glob(f"{PREFIX}*.npy")):
        if file.with_suffix(".json").exists():  # otherwise they will be made again
            _load_checked(file)


def _load_checked(file: Path) -> Vectors:
    """Map vectors into memory, after checking that they are as they were written."""
    description = _read_description(file.with_suffix(".json"))
    if not description:
        name = file.with_suffix(".json").name
        raise DataError(f"{file.parent} is damaged: {name} has been changed. {_again(file)}")
    seals = {file.name: description["file"]}
    if damage := next(find_damage(file.parent, seals, is_hashed=lambda name: True), None):
        raise DataError(f"{file.parent} is damaged: {damage}. {_again(file)}")
    try:
        vectors = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{file} is damaged. {_again(file)}") from error
    if vectors.dtype != np.float32 or not _is_finite(vectors):
        raise DataError(f"{file} holds other values than finite numbers. {_again(file)}")
    return cast(Vectors, vectors)


def _again(file: Path) -> str:
    return f"Delete {file}: it will be made again."


def look_of(files: Iterable[Path]) -> Look:
    """Return what changes when one of the files is changed, replaced or moved."""
    look: Look = []
    for file in files:
        found = file.stat()
        times = (found.st_mtime_ns, found.st_ctime_ns)  # nobody sets the second back
        look += [str(file.resolve()), found.st_size, *times, found.st_ino]
    return look


def _read_descriptions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the description of all vectors of a folder that are not damaged."""
    for file in sorted(folder.glob(f"{PREFIX}*.json")):
        if values := _read_description(file):
            yield values


def _read_description(file: Path) -> dict[str, Any]:
    """Read the description of vectors; return nothing if it is missing or damaged."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        is_sound = values.pop("seal") == settings_hash(values)
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}
    return values if is_sound else {}


def _is_finite(vectors: Vectors) -> bool:
    """Return whether all numbers are finite; no copy is made."""
    return vectors.size == 0 or bool(np.isfinite(vectors.min()) and np.isfinite(vectors.max()))
