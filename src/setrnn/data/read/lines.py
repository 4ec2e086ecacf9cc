"""The lines of a file as UTF-8: plain or gzip, in any encoding, and in bounded memory."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from setrnn.errors import DataError

# Byte order marks; that of UTF-32 begins with that of UTF-16.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CHUNK = 1 << 20


class RowProblem(Exception):  # noqa: N818 - not an error yet: the reader adds the place
    """What is wrong with a row, and how to correct it; the reader adds the place."""


class Unlabelled(RowProblem):
    """A row that has no labels, and does not say that none applies."""


def numbered_lines(
    path: Path, max_bytes: int, encoding: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield each line of a plain or gzip file as UTF-8, with its number, from 1.

    A byte order mark is dropped; that of UTF-16 names the encoding of the file. Other lines that
    are not UTF-8 are decoded as `encoding`, or returned as they are. A line of more than
    `max_bytes` is truncated, but stays longer than `max_bytes`, so that `decode` refuses it:
    memory is bounded.
    """
    with file_errors(path), _open(path) as stream:
        read_line = _utf8_lines(stream, encoding)
        for number, line in enumerate(iter(lambda: read_line(max_bytes + 1), b""), start=1):
            yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if len(line) > max_bytes:
                while line and not line.endswith(b"\n"):
                    line = read_line(_CHUNK)


def numbered_records(path: Path, start: bytes, max_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield each record: the lines from one that begins with `start` to the next such line.

    The number is that of its first line. A record over the limit is truncated, but stays over it.
    """
    first, lines, n_bytes = 0, list[bytes](), 0
    for number, line in numbered_lines(path, max_bytes):
        if line.startswith(start):
            if lines:
                yield first, b"".join(lines)
            first, lines, n_bytes = number, [], 0
        elif not lines:
            continue
        if n_bytes <= max_bytes:
            lines.append(line)
            n_bytes += len(line)
    if lines:
        yield first, b"".join(lines)


def decode(line: bytes, max_bytes: int) -> str:
    """Decode UTF-8; raise RowProblem if a line is too long, is not UTF-8 or has a NUL byte."""
    check_length(len(line), max_bytes)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise RowProblem(
            f"is not UTF-8 (byte 0x{line[error.start]:02x} at column {error.start + 1}). Name its "
            "encoding, probably --encoding cp1252 or latin-1, or save the file as UTF-8."
        ) from None
    if "\0" in text:
        raise RowProblem("holds a NUL byte. Remove it, or save the file as UTF-8 if it is UTF-16.")
    return text


def check_length(n_bytes: int, max_bytes: int) -> None:
    """Raise RowProblem if a row is too long."""
    if n_bytes > max_bytes:
        raise too_long(max_bytes)


def check_characters(values: Sequence[str]) -> None:
    """Raise if a string holds NUL or cannot be written as UTF-8 (a lone surrogate)."""
    whole = "\n".join(values)  # to check one string is much faster
    try:
        if "\0" not in whole and (whole.isascii() or whole.encode()):
            return
        problem = "a NUL character (\\u0000)"
    except UnicodeEncodeError as error:
        problem = f"half a character (\\u{ord(whole[error.start]):04x}), which UTF-8 cannot write"
    raise RowProblem(f"holds {problem}. Remove it, or write the whole surrogate pair.")


def too_long(max_bytes: int) -> RowProblem:
    """Return what is wrong with a row that is too long."""
    return RowProblem(
        f"is longer than {max_bytes:,} bytes. Split the document, or raise max_row_bytes."
    )


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn the errors of reading a file into a DataError of one line."""
    try:
        yield
    except EOFError as error:
        raise DataError(f"{path} is cut short: its gzip data ends early. Copy it again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is not a valid gzip file. Copy it again, or remove .gz from its name if it "
            "is not compressed."
        ) from error
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist. Check the name.") from error
    except UnicodeError as error:
        raise DataError(
            f"{path} cannot be decoded ({getattr(error, 'reason', error)}). Copy it again, or name "
            "its encoding with --encoding."
        ) from error
    except OSError as error:
        reason = " ".join(str(error.strerror or error).split())
        raise DataError(f"{path} cannot be read: {reason}. Check the file.") from error


def file_stem(path: Path) -> str:
    """Return the name of a file without its suffix: `train` for train.jsonl.gz."""
    return Path(path.name.removesuffix(".gz")).stem


def has_mark(path: Path) -> bool:
    """Return whether a file begins with a byte order mark, as spreadsheets write it."""
    with path.open("rb") as stream:
        return stream.read(4).startswith((codecs.BOM_UTF8, *MARKS))


def _open(path: Path) -> io.BufferedReader:
    if not path.name.lower().endswith(".gz"):
        return path.open("rb")
    # GzipFile.readline is slow Python code; a buffer around it reads lines in C.
    return io.BufferedReader(cast(io.RawIOBase, gzip.open(path, "rb")), _CHUNK)


def _utf8_lines(stream: io.BufferedReader, encoding: str | None) -> Callable[[int], bytes]:
    """Return a function that reads the next line of a file as UTF-8, like `readline`.

    A line that cannot be decoded is returned as it is.
    """
    start = stream.peek(4)
    encoding = next((MARKS[mark] for mark in MARKS if start.startswith(mark)), encoding)
    if encoding is None:
        return stream.readline
    if "\n".encode(encoding) != b"\n":
        text = io.TextIOWrapper(stream, encoding, newline="\n")
        return lambda n_most: text.readline(n_most).encode(errors="surrogatepass")
    encodings = ("utf-8", encoding)

    def read_line(n_most: int) -> bytes:
        line = stream.readline(n_most)
        for name in encodings:
            with suppress(UnicodeDecodeError):
                return line.decode(name).encode()
        return line

    return read_line
