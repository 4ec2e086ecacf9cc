"""Copies of a model: a folder, or one zip file, which is checked before anything is unpacked."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setrnn.data.folders import locked, whole_file, whole_folder
from setrnn.data.model_files import (
    CONFIG,
    README,
    choose_readme,
    is_description,
    is_model_file,
    refuse_other_folder,
)
from setrnn.data.model_folder import MOST_BYTES, read_description, read_settled
from setrnn.errors import ModelError

MOST_FILES = 100  # of a zip file: a mixture has one tokenizer per member
MOST_RATIO = 100  # by which unpacking may enlarge a zip file
SMALL = 1 << 20  # bytes that may be unpacked from any
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ANCIENT = (1980, 1, 1, 0, 0, 0)  # equal models have equal bytes
_FILE = (stat.S_IFREG | 0o644) << 16


def copy_model(folder: Path, target: Path) -> list[str]:
    """Copy a model folder; return the names of other files in it, which are not copied.

    A model at `target` is replaced, but not what people wrote about it.
    """
    refuse_other_folder(target)
    with locked(target), whole_folder(target) as temporary:
        names = read_settled(folder, lambda: _copy_files(folder, temporary))
        readme = temporary / README
        new = readme.read_text(encoding="utf-8") if readme.is_file() else ""
        if kept := choose_readme(target / README, new):
            readme.write_bytes(kept)
    return sorted(name for name in names if not is_model_file(name) and not name.startswith("."))


def _copy_files(folder: Path, target: Path) -> list[str]:
    """Copy the files of a model to an empty folder; return all names in its folder."""
    read_description(folder)
    for old in target.iterdir():  # of a try before
        old.unlink()
    names = [each.name for each in folder.iterdir()]
    for name in filter(is_model_file, names):
        shutil.copyfile(folder / name, target / name)
    return names


def write_zip(folder: Path, file: Path) -> None:
    """Write the files of a model folder into one zip file, whole or not at all.

    Nothing is compressed: weights do not get smaller, and equal models give equal bytes.
    """
    refuse_other_zip(file)
    with whole_file(file) as stream, zipfile.ZipFile(stream, "w") as packed:
        for each in sorted(folder.iterdir()):
            if is_model_file(each.name):
                entry = zipfile.ZipInfo(each.name, _ANCIENT)
                entry.create_system, entry.external_attr = 3, _FILE  # the same on every system
                entry.file_size = each.stat().st_size
                with each.open("rb") as source, packed.open(entry, "w") as target:
                    shutil.copyfileobj(source, target, 1 << 20)


def refuse_other_zip(file: Path) -> None:
    """Raise if `file` exists and is not a zip file of a model."""
    if not file.exists() or file.is_dir():  # a folder is refused when it is written to
        return
    try:
        with _opened(file) as packed:
            is_model = is_description(packed.read(CONFIG))
    except ModelError:
        is_model = False
    if not is_model:
        raise ModelError(f"{file} exists and is not a model. Name another file.")


def unpack_zip(file: Path, folder: Path) -> None:
    """Unpack a model into an empty folder; anything but the files of a model is refused."""
    with _opened(file) as packed:
        for entry in packed.infolist():
            with packed.open(entry) as source, (folder / entry.filename).open("xb") as target:
                shutil.copyfileobj(source, target, 1 << 20)


@contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip file whose entries are the files of a model."""
    if not file.is_file():
        raise ModelError(f"{file} is not a model: there is no such file.")
    try:
        with zipfile.ZipFile(file) as packed:
            _check_entries(file, packed.infolist())
            yield packed
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise ModelError(f"{file} is damaged, or not a zip file. Copy the model again.") from error


def _check_entries(file: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Raise ModelError unless all entries are plain files of a model, once each, and not huge."""
    names = [entry.filename for entry in entries]
    for entry in entries:
        mode = entry.external_attr >> 16
        if not is_model_file(entry.filename) or stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise ModelError(
                f"{file} holds {entry.filename!r:.60}, which is not a file of a model. Write the "
                f"file by setrnn push FOLDER {file.name}."
            )
        if entry.flag_bits & 1 or entry.compress_type not in _KINDS:
            raise ModelError(f"{file} is encrypted, or compressed in a way that setrnn lacks.")
        if entry.filename.endswith(".json") and entry.file_size > MOST_BYTES:
            raise ModelError(f"{file}: {entry.filename} is too large to be of a model.")
        if entry.header_offset < 0:
            raise zipfile.BadZipFile("an entry before the start of the file")
    if CONFIG not in names:
        raise ModelError(f"{file} is not a model: it has no {CONFIG}.")
    if len(set(names)) < len(names) or len(names) > MOST_FILES:
        raise ModelError(f"{file} holds too many files, or one file twice. Copy the model again.")
    n_bytes = sum(entry.file_size for entry in entries)
    if n_bytes > max(SMALL, MOST_RATIO * file.stat().st_size):
        raise ModelError(
            f"{file} would be unpacked to {n_bytes:,} bytes, more than {MOST_RATIO} times its "
            "size. Write the file by setrnn push FOLDER FILE.zip."
        )
