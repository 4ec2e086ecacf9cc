"""Stream the lines of a file, plain or gzip, without ever holding a very long one."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from setrnn.errors import DataError

_CHUNK = 1 << 20


def numbered_lines(path: Path, max_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number, from 1; a UTF-8 byte order mark is dropped.

    A line of more than `max_bytes` comes cut, but still longer than `max_bytes`: ask its
    length, then pass it over.
    """
    with file_errors(path), _open(path) as stream:
        next_line = partial(stream.readline, max_bytes + 1)
        for number, line in enumerate(iter(next_line, b""), start=1):
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if len(line) > max_bytes:
                _skip_to_newline(stream, line)


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Say in one line what is wrong with a file as a whole."""
    try:
        yield
    except EOFError as error:
        raise DataError(f"{path} is cut short: its gzip data ends early. Copy it again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is not a sound gzip file. Copy it again, or drop .gz from its name if it "
            "is not packed."
        ) from error
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist. Check the name.") from error
    except IsADirectoryError as error:
        raise DataError(f"{path} is a folder where a file is meant. Name a file in it.") from error
    except PermissionError as error:
        raise DataError(f"{path} may not be read. Check its permissions.") from error
    except OSError as error:
        reason = " ".join(str(error.strerror or error).split())
        raise DataError(f"{path} cannot be read: {reason}. Check the disk it lies on.") from error


def _open(path: Path) -> BinaryIO:
    if not path.name.lower().endswith(".gz"):
        return path.open("rb")
    # GzipFile.readline is Python; the buffer around it makes lines at C speed.
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), _CHUNK))


def _skip_to_newline(stream: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = stream.readline(_CHUNK)
