"""Stream files of word vectors (word2vec text and binary, GloVe) and keep the wanted words."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from setrnn.errors import ConfigError, DataError

Vectors: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.bool_]
# Called with what is being done, and the share that is done.
Progress: TypeAlias = Callable[[str, float], None]
# The number of a line, its word, and the rest of the line, not parsed.
Entry: TypeAlias = tuple[int, bytes, bytes]

BYTES_AT_ONCE = 1 << 20
ENTRIES_BETWEEN_REPORTS = 50_000


def read_vectors(
    file: Path, rows: Mapping[str, int], dimensions: int, on_progress: Progress
) -> tuple[Vectors, Mask]:
    """Read the vectors of the words in `rows`; return them and whether each row was found.

    The file is word2vec text, with or without its header (GloVe), or word2vec binary (.bin), both
    also as .gz. Only wanted words are kept in memory. A word that the file has only in capitals
    gets the first such vector.
    """
    vectors = np.zeros((max(rows.values()) + 1, dimensions), dtype=np.float32)
    is_found = np.zeros(len(vectors), dtype=np.bool_)
    is_exact = np.zeros(len(vectors), dtype=np.bool_)
    is_binary = file.name.removesuffix(".gz").endswith(".bin")
    for number, encoded, values in _entries(file, is_binary, dimensions, on_progress):
        word = encoded.decode(errors="replace")  # invalid UTF-8 matches no word
        exact_row = rows.get(word)
        row = rows.get(word.lower()) if exact_row is None else exact_row
        if row is None or is_exact[row] or (exact_row is None and is_found[row]):
            continue
        place = f"{file} {'vector' if is_binary else 'line'} {number}"
        try:
            if is_binary:
                vectors[row] = np.frombuffer(values, dtype="<f4")
            else:
                vectors[row] = np.array(values.split(), dtype=np.float32)
        except ValueError as error:
            raise DataError(f"{place}: {error}. A word and its numbers were expected.") from error
        if not np.isfinite(vectors[row]).all():
            raise DataError(f"{place}: a vector must hold finite numbers. Remove this one.")
        is_found[row] = True
        is_exact[row] = exact_row is not None
    return vectors, is_found


def _entries(
    file: Path, is_binary: bool, dimensions: int, on_progress: Progress
) -> Iterator[Entry]:
    """Stream the entries of a file."""
    split = _binary_entries if is_binary else _text_entries
    with reading_errors(file), file.open("rb") as raw:
        is_compressed = file.name.endswith(".gz")
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if is_compressed else raw
        size = max(file.stat().st_size, 1)
        for entry in split(stream, file, dimensions):
            if entry[0] % ENTRIES_BETWEEN_REPORTS == 0:
                on_progress(f"reading {file.name}", raw.tell() / size)
            yield entry


def missing_file(file: Path) -> DataError:
    """Return the error of a file of vectors that does not exist."""
    return DataError(
        f"There is no file {file}. vectors.source is 'word2vec', 'none', 'wordllama', a folder of "
        "model2vec or a file of vectors."
    )


@contextmanager
def reading_errors(file: Path) -> Iterator[None]:
    """Turn the errors of reading a file of vectors into a DataError of one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(file) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is cut short, or not what its name says"
        raise DataError(f"{file} cannot be read: {reason}.") from error


def _text_entries(stream: BinaryIO, file: Path, dimensions: int) -> Iterator[Entry]:
    """Split each line into its word and the rest, and check the number of values."""
    n_expected, n_entries = 0, 0
    for number, line in enumerate(stream, 1):
        line = line.rstrip()
        if number == 1:
            fields = line.split()
            is_header = len(fields) == 2 and all(field.isdigit() for field in fields)
            n_expected, width = map(int, fields) if is_header else (0, len(fields) - 1)
            _check_dimensions(file, width, dimensions)
            if is_header:
                continue
        word, _, values = line.partition(b" ")
        if line.count(b" ") != dimensions:  # counting is fast, and correct for nearly all lines
            fields = line.split()
            if not fields:
                continue
            if _is_phrase(fields, dimensions):
                n_entries += 1
                continue
            if len(fields) != dimensions + 1:
                raise DataError(
                    f"{file} line {number}: {dimensions} numbers were expected after the word, "
                    f"found {len(fields) - 1}. Correct or remove the line."
                )
            word, values = fields[0], b" ".join(fields[1:])
        n_entries += 1
        yield number, word, values
    if not n_entries:
        raise DataError(f"{file} holds no vectors.")
    if n_entries < n_expected:
        raise _cut_short(file, n_entries, n_expected)


def _is_phrase(fields: list[bytes], dimensions: int) -> bool:
    """Return whether the word of a line contains spaces, as a few in GloVe do."""
    if len(fields) <= dimensions + 1:
        return False
    try:
        float(fields[-dimensions - 1])
    except ValueError:
        return True
    return False


def _binary_entries(stream: BinaryIO, file: Path, dimensions: int) -> Iterator[Entry]:
    """Split the stream into words and vectors: `word`, a space, then 4 bytes per dimension."""
    header = stream.readline(100).split()
    if len(header) != 2 or not all(field.isdigit() for field in header):
        raise DataError(
            f"{file} is not a word2vec binary file: it must begin with the number of words and "
            "of dimensions. (Of the two files of fastText, use the .vec file.)"
        )
    n_expected, width = map(int, header)
    _check_dimensions(file, width, dimensions)
    n_bytes = 4 * dimensions
    buffer, start = b"", 0
    for number in range(1, n_expected + 1):
        while (space := buffer.find(b" ", start)) < 0 or len(buffer) <= space + n_bytes:
            chunk = stream.read(BYTES_AT_ONCE)
            if not chunk or len(buffer) - start > BYTES_AT_ONCE + n_bytes:
                raise _cut_short(file, number - 1, n_expected)
            buffer, start = buffer[start:] + chunk, 0
        end = space + 1 + n_bytes
        yield number, buffer[start:space].lstrip(b"\n"), buffer[space + 1 : end]
        start = end


def _check_dimensions(file: Path, found: int, wanted: int) -> None:
    if found != wanted:
        raise ConfigError(
            f"{file} holds vectors of {found} dimensions, but vectors.dimensions is {wanted}. "
            f"Set vectors.dimensions={found}, or give another file."
        )


def _cut_short(file: Path, found: int, expected: int) -> DataError:
    return DataError(f"{file} is cut short: {found:,} vectors instead of {expected:,}.")
