"""Files and folders written whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from setrnn.errors import DataError

PREVIOUS = ".previous"
MAX_TRIES = 20


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` if the block ends well.

    A folder already there is replaced by two renames. A kill between them leaves it beside
    `target`, under a name that `recovered` finds: one of the two is always whole.
    """
    target = target.resolve()  # through links: it is what they lead to that is replaced
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file. Remove it, or name another folder.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _beside(target)
        temporary.mkdir()
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror}.") from error
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        _exchange(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        recovered(target)
        raise


@contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Yield a stream to a temporary file that becomes `target` if the block ends well."""
    check_file_place(target)
    target = target.resolve()  # through links: it is what they lead to that is replaced
    temporary = _beside(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        stream = temporary.open("xb")
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror}.") from error
    try:
        with stream:
            yield stream
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_file_place(target: Path) -> None:
    """Refuse to write a file where a folder, a device or a pipe is."""
    if target.is_dir():
        raise DataError(f"{target} is a folder. Name a file.")
    if target.exists() and not target.is_file():
        raise DataError(f"{target} is a device or a pipe, not a file. Name a file.")


def file_hash(file: Path) -> str:
    """Return a hash of a file's content."""
    digest = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def recovered(target: Path) -> Path:
    """Return `target`, put back first if a kill left it under its temporary name."""
    previous = _previous(target.resolve())
    if previous.is_dir() and not target.exists():
        with suppress(FileNotFoundError):  # another reader was faster
            previous.rename(target)
    return target


def _exchange(temporary: Path, target: Path) -> None:
    """Put the new folder in the place of the old one.

    A reader between the two renames puts the old one back (`recovered`): then once more.
    """
    previous = _previous(target)
    for _ in range(MAX_TRIES):
        if target.exists():
            shutil.rmtree(previous, ignore_errors=True)
            target.rename(previous)
        try:
            temporary.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            break
    else:
        raise DataError(f"{target} is being written by another process. Try again.")
    shutil.rmtree(previous, ignore_errors=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}")


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}{PREVIOUS}")


def _flush(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
