"""Write files and folders atomically: completely, or not at all."""

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
def explain_failed_write(place: Path, way_out: str = "") -> Iterator[None]:
    """Turn the errors of writing a file or folder into a DataError of one line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"{place} cannot be written: {reason}.{way_out}") from error


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` if the block succeeds.

    An existing folder is replaced by two renames. If the process is killed between them, the
    old folder lies beside `target` under a name that `recovered` finds, so a complete folder
    always exists.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "model"
        >>> with whole_folder(place) as folder:
        ...     _ = (folder / "labels.json").write_text("[]")
        >>> [file.name for file in place.iterdir()]
        ['labels.json']
    """
    target = target.resolve()  # replace what a link points to, not the link
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file. Remove it, or name another folder.")
    temporary = _beside(target)
    with explain_failed_write(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.mkdir()
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb+") as stream:  # Windows does not flush a read-only one
                    os.fsync(stream.fileno())
        _exchange(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        recovered(target)
        raise


@contextmanager
def whole_file(target: Path) -> Iterator[BinaryIO]:
    """Yield a stream to a temporary file that becomes `target` if the block succeeds."""
    check_file_place(target)
    target = target.resolve()  # replace what a link points to, not the link
    temporary = _beside(target)
    with explain_failed_write(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        stream = temporary.open("xb")
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def check_file_place(target: Path) -> None:
    """Raise if `target` is a folder, a device or a pipe."""
    if target.is_dir():
        raise DataError(f"{target} is a folder. Name a file.")
    if target.exists() and not target.is_file():
        raise DataError(f"{target} is a device or a pipe, not a file. Name a file.")


def file_hash(file: Path) -> str:
    """Return a hash of the content of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def recovered(target: Path) -> Path:
    """Return `target`, restored first if a killed process left it under its temporary name."""
    previous = _previous(target.resolve())
    if previous.is_dir() and not target.exists():
        with suppress(FileNotFoundError):  # another reader restored it first
            previous.rename(target)
    return target


def _exchange(temporary: Path, target: Path) -> None:
    """Replace the old folder by the new one.

    A reader may restore the old folder (`recovered`) between the two renames: then try again.
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
