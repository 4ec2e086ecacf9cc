"""Read a text file of word vectors (word2vec, GloVe, fastText), and keep the wanted words."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from setrnn.data.text.words import UNKNOWN
from setrnn.errors import ConfigError, DataError

Vectors: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.bool_]
# Called with what is being done, and the share that is done.
Progress: TypeAlias = Callable[[str, float], None]

DIGITS = tuple("0123456789")
# The unknown word in the files of GloVe.
UNKNOWN_IN_FILES = "<unk>"
LINES_BETWEEN_REPORTS = 50_000


def read_vectors(
    file: Path, rows: Mapping[str, int], dimensions: int, on_progress: Progress
) -> tuple[Vectors, Mask]:
    """Read the vectors of the words in `rows`; return them and whether each row was found.

    The file may have the header of word2vec, and may be compressed (.gz). A word that the file
    has only in capitals gets the first such vector.
    """
    vectors = np.zeros((max(rows.values()) + 1, dimensions), dtype=np.float32)
    is_found = np.zeros(len(vectors), dtype=np.bool_)
    is_exact = np.zeros(len(vectors), dtype=np.bool_)
    for number, word, values in _list_entries(file, dimensions, on_progress):
        word = UNKNOWN if word == UNKNOWN_IN_FILES else word
        exact_row = rows.get(word)
        row = rows.get(word.lower()) if exact_row is None else exact_row
        if row is None or is_exact[row] or (exact_row is None and is_found[row]):
            continue
        try:
            vectors[row] = np.array(values, dtype=np.float32)
        except ValueError as error:
            raise DataError(
                f"{file} line {number}: {error}. A word and its numbers were expected."
            ) from error
        if not np.isfinite(vectors[row]).all():
            raise DataError(f"{file} line {number}: a vector must hold finite numbers.")
        is_found[row] = True
        is_exact[row] = exact_row is not None
    return vectors, is_found


def _list_entries(
    file: Path, dimensions: int, on_progress: Progress
) -> Iterator[tuple[int, str, list[bytes]]]:
    """Yield the number of each line, its word and its numbers, not parsed."""
    n_expected, n_entries = 0, 0
    try:
        with file.open("rb") as raw:
            size = max(file.stat().st_size, 1)
            stream = gzip.GzipFile(fileobj=raw) if file.suffix == ".gz" else raw
            for number, line in enumerate(stream, 1):
                fields = line.split()
                if number == 1:
                    is_header = len(fields) == 2 and all(field.isdigit() for field in fields)
                    n_expected, width = map(int, fields) if is_header else (0, len(fields) - 1)
                    if width != dimensions:
                        raise ConfigError(
                            f"{file} holds vectors of {width} dimensions, but vectors.dimensions "
                            f"is {dimensions}. Set vectors.dimensions={width}, or give another "
                            "file: text with a word and its numbers per line."
                        )
                    if is_header:
                        continue
                if not fields:
                    continue
                if len(fields) < dimensions + 1:
                    raise DataError(
                        f"{file} line {number}: {dimensions} numbers were expected after the "
                        f"word, found {len(fields) - 1}. Correct or remove the line."
                    )
                n_entries += 1
                if number % LINES_BETWEEN_REPORTS == 0:
                    on_progress(f"reading {file.name}", raw.tell() / size)
                if len(fields) == dimensions + 1:  # GloVe has a few words with spaces
                    yield number, fields[0].decode(errors="replace"), fields[1:]
    except FileNotFoundError as error:
        raise missing_file(file) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is cut short, or not what its name says"
        raise DataError(f"{file} cannot be read: {reason}.") from error
    if not n_entries or n_entries < n_expected:
        raise DataError(f"{file} is cut short: {n_entries:,} vectors instead of {n_expected:,}.")


def missing_file(file: Path) -> DataError:
    """Return the error of a file of vectors that does not exist."""
    return DataError(
        f"There is no file {file}. vectors.source is 'ppmi', 'word2vec', 'none' or a file of "
        "vectors."
    )
