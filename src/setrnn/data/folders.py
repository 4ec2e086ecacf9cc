"""Folders written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror}.") from error
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        temporary.chmod(0o755)
        _exchange(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        recovered(target)
        raise


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


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}{PREVIOUS}")


def _flush(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
