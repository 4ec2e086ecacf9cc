"""Turn the bytes of a file into UTF-8, whatever encoding it was saved in."""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from setrnn.errors import ConfigError

# Byte order marks; that of UTF-32 begins with that of UTF-16.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


ReadLine: TypeAlias = Callable[[int], bytes]


def utf8_lines(stream: io.BufferedReader, encoding: str | None = None) -> ReadLine:
    """Return a function that reads the next line of a file as UTF-8, like `readline`.

    A byte order mark says whether a file is UTF-8, UTF-16 or UTF-32. Other lines that are not UTF-8
    are decoded as `encoding`, if one is given: files of both kinds can be read together. A line
    that cannot be decoded is returned as it is, for the reader to refuse.
    """
    start = stream.peek(4)
    encoding = next((MARKS[mark] for mark in MARKS if start.startswith(mark)), encoding)
    if encoding is None:
        return stream.readline
    if "\n".encode(encoding) != b"\n":
        text = io.TextIOWrapper(stream, encoding, newline="\n")
        return lambda n_most: text.readline(n_most).encode(errors="surrogatepass")
    other = encoding

    def read_line(n_most: int) -> bytes:
        line = stream.readline(n_most)
        if line.isascii():
            return line
        with suppress(UnicodeDecodeError):
            line.decode()
            return line
        with suppress(UnicodeDecodeError):
            return line.decode(other).encode()
        return line

    return read_line


def has_mark(path: Path) -> bool:
    """Return whether a file begins with a byte order mark, as spreadsheets write it."""
    with path.open("rb") as stream:
        return stream.read(4).startswith((codecs.BOM_UTF8, *MARKS))


def check_encoding(name: str) -> None:
    """Raise ConfigError if Python knows no encoding of texts of this name."""
    try:
        b"a".decode(name)
    except LookupError:
        raise ConfigError(
            f"There is no encoding '{name}'. Try cp1252 or latin-1 for Western languages, utf-16, "
            "or save the file as UTF-8."
        ) from None
    except UnicodeError:
        pass  # an encoding of wide characters


def guess_encoding(line: bytes) -> str:
    """Return the likely encoding of a line that is not UTF-8.

    Example:
        >>> guess_encoding("caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode("latin-1"))
        'cp1252'
        >>> guess_encoding("cafe".encode("utf-16-le"))
        'utf-16-le'
    """
    n_nul = line.count(b"\0")
    if 3 * n_nul >= len(line):
        return "utf-16-le" if line[1::2].count(b"\0") * 2 >= n_nul else "utf-16-be"
    try:
        line.decode("cp1252")  # it has all of latin-1, and quotes and dashes in place of controls
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
