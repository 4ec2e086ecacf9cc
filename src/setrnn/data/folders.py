"""Folders written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setrnn.errors import DataError

PREVIOUS = ".previous"


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `target` if the block ends well.

    A folder already there is replaced by two renames. A kill between them leaves it beside
    `target`, under a name that `recovered` finds: one of the two is always whole.
    """
    target = target.absolute()
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
        previous = _previous(target)
        if target.exists():
            shutil.rmtree(previous, ignore_errors=True)
            target.rename(previous)
        temporary.rename(target)
        shutil.rmtree(previous, ignore_errors=True)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        recovered(target)
        raise


def recovered(target: Path) -> Path:
    """Return `target`, put back first if a kill left it under its temporary name."""
    previous = _previous(target.absolute())
    if previous.is_dir() and not target.exists():
        previous.rename(target)
    return target


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}{PREVIOUS}")


def _flush(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
