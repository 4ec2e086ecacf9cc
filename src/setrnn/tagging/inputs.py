"""Check what callers pass as texts, features, labels and known labels."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.example import Example, KnownLabels
from setrnn.data.ragged import Ragged
from setrnn.data.streaming import batched
from setrnn.data.text.words import TextEncoder, whole_characters
from setrnn.errors import ConfigError, DataError
from setrnn.metrics import as_indicator

if TYPE_CHECKING:
    from typing import TypeAlias

    # Sets of labels, or an indicator matrix (texts x labels) of 0 and 1.
    Targets: TypeAlias = Sequence[Collection[str]] | npt.NDArray[Any] | scipy.sparse.csr_matrix
    Features: TypeAlias = Sequence[Collection[str]] | None
    Unknown: TypeAlias = Sequence[Collection[str]] | None
    Complete: TypeAlias = Sequence[bool] | npt.NDArray[np.bool_] | None

Document = tuple[str, Sequence[str]]  # a text and its features

MAX_SETS = 10_000  # that may be asked for per document
_NUMBERS = (int, float, complex, np.number, np.bool_)


def pair_features(texts: Iterable[Any], features: Iterable[Any] | None) -> list[Document]:
    """Pair each text with its features; raise DataError if they are not strings."""
    documents = read_texts(texts)
    rows = read_collections(features, len(documents), "features")
    return list(zip(documents, rows, strict=True))


def pair_known(
    present: Sequence[Collection[str]], absent: Sequence[Collection[str]], n_texts: int
) -> list[KnownLabels]:
    """Pair the present and the absent labels of each text; an empty list means no labels."""
    sides = {"present": present, "absent": absent}
    rows = (read_collections(side or None, n_texts, name) for name, side in sides.items())
    return [KnownLabels(*each) for each in zip(*rows, strict=True)]


def encode_batches(
    encoder: TextEncoder, documents: Iterable[Document], n_documents: int
) -> Iterator[tuple[list[str], Ragged]]:
    """Yield the texts and token ids of a stream of documents, in batches of `n_documents`."""
    n_before = 0
    for batch in batched(documents, n_documents):
        texts, features = [text for text, _ in batch], [row for _, row in batch]
        yield texts, encoder.encode(texts, features, partial(_number_text, n_before))
        n_before += len(batch)


def _number_text(n_before: int, index: int) -> str:
    return f"Text {n_before + index}"


def check_top(top: int) -> None:
    """Raise ConfigError if `top` is not a positive whole number, or absurdly large."""
    if not isinstance(top, int) or not 1 <= top <= MAX_SETS:
        raise ConfigError(
            f"top must be a whole number of at least 1 and at most {MAX_SETS:,}, got {top}."
        )


def read_texts(texts: Iterable[Any]) -> list[str]:
    """Return texts as a list of plain strings; raise DataError if they are not strings."""
    documents = []
    for number, text in enumerate(_read_rows(texts, "texts", "a list of strings, such as [text]")):
        if not isinstance(text, str):
            advice = "Write '' for an empty text." if text is None else "Write it as a string."
            if isinstance(text, np.ndarray):
                advice = "Take the one column that holds the texts."
            raise DataError(f"texts[{number}] must be a string, got {_show(text)}. {advice}")
        documents.append(str(text))  # NumPy has its own class of strings
    return documents


def make_examples(
    documents: Sequence[str],
    label_sets: Sequence[tuple[str, ...]],
    features: Features = None,
    unknown: Unknown = None,
    complete: Complete = None,
) -> list[Example]:
    """Return documents with their labels and features; `complete` is as in `fit`."""
    n_texts, is_complete = len(documents), [True] * len(documents)
    if complete is not None:
        wanted = "a list with True or False for each text"
        is_complete = _read_rows(complete, "complete", wanted, n_texts)
        for number, row in enumerate(is_complete):
            if not isinstance(row, bool | np.bool_):
                raise DataError(f"complete[{number}] must be True or False, got {_show(row)}.")
    own_features = read_collections(features, n_texts, "features")
    others = read_collections(unknown, n_texts, "unknown")
    rows = zip(map(whole_characters, documents), label_sets, own_features, strict=True)
    return [
        Example(str(n), *row, unknown=others[n], complete=bool(is_complete[n]))
        for n, row in enumerate(rows)
    ]


def read_targets(
    y: Any,  # noqa: ANN401 (whatever a user gives)
    n_texts: int,
    column_names: Sequence[str] | None = None,
) -> tuple[list[tuple[str, ...]], list[str] | list[int] | None]:
    """Return the labels of each text, and the columns if y is an indicator matrix.

    The columns are the names of a DataFrame's, or numbers. The label of a column is its name. A
    matrix without names has `column_names`; if these are not given either, its numbers.
    """
    if y is None:
        raise DataError(
            "SetRNNClassifier requires y to be passed, but the target y is None. "
            "Give a collection of labels for each text."
        )
    own_names = _read_column_names(y)
    if not scipy.sparse.issparse(y):
        rows = _read_rows(y, "y", "a list with a collection of labels for each text")
        if rows and isinstance(rows[0], _NUMBERS):
            raise DataError(
                "y must be a collection of labels for each text, or a matrix of 0 and 1; got one "
                f"class or continuous value per text, such as {_show(rows[0])}. If each text has "
                "one label, write [[str(each)] for each in y]."
            )
        if not _are_rows_of_numbers(rows):
            if own_names is not None and len(own_names) == 1:  # a table of one column of lists
                rows = [row[0] for row in rows]
            return read_collections(rows, n_texts, "y"), None
        try:
            y = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(
                "y must be a matrix of 0 and 1, or a collection of strings for each text: its "
                "rows of numbers differ in length, or hold something else."
            ) from None
    matrix = as_indicator(y, "y")
    n_rows, n_columns = matrix.shape
    _check_length(n_rows, n_texts, "y")
    names = column_names if own_names is None else own_names
    if names is None:
        names = [str(column) for column in range(n_columns)]
    if len(names) != n_columns:
        raise DataError(
            f"y has {n_columns} columns, but the classifier was fitted with {len(names)} labels. "
            "Give a column for each of classes_, in that order."
        )
    if own_names and column_names is not None and set(own_names).isdisjoint(column_names):
        raise DataError(
            f"The classifier knows none of the columns of y, such as {_show(own_names[0])}. Give "
            "the columns that it was fitted with."
        )
    columns = Ragged(matrix.indices, matrix.indptr.astype(np.int64))
    label_sets = [tuple(names[column] for column in row) for row in columns]
    return label_sets, own_names or list(range(n_columns))


def _read_column_names(y: Any) -> list[str] | None:  # noqa: ANN401 (whatever a user gives)
    """Return the names of the columns of a DataFrame; None for numbers 0, 1, 2 ... or no names."""
    if not hasattr(y, "columns") or not hasattr(y, "__array__"):
        return None
    names = [str(each) for each in y.columns]
    if names == [str(number) for number in range(len(names))]:
        return None
    if len(set(names)) < len(names) or "" in names:
        raise DataError("The columns of y are labels: each needs a name of its own.")
    return names


def _are_rows_of_numbers(rows: list[Any]) -> bool:
    filled = (row for row in rows if isinstance(row, list | tuple | np.ndarray) and np.size(row))
    return isinstance(next(filled, ("",))[0], _NUMBERS)


def read_collections(
    collections: Iterable[Any] | None, n_texts: int, name: str
) -> list[tuple[str, ...]]:
    """Return a collection of strings for each text; empty ones if there are none."""
    if collections is None:
        return [()] * n_texts
    wanted = "a list with a collection of strings for each text"
    found = []
    for number, row in enumerate(_read_rows(collections, name, wanted, n_texts)):
        place = f"{name}[{number}]"
        if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
            advice = "Write ['...'], or [] for none."
            if isinstance(row, str):
                advice = f"Write [{_show(row)}]: [[each] for each in {name}] does it for all."
            raise DataError(f"{place} must be a collection of strings, got {_show(row)}. {advice}")
        found.append(tuple(row))  # it may be an iterator
        for each in found[-1]:
            if not isinstance(each, str):
                raise DataError(
                    f"{place} must be a collection of strings, got {_show(row)}, with "
                    f"{_show(each)} in it. Write each as a string."
                )
            if not each or (not each.isascii() and whole_characters(each) != each):
                what = "half a character" if each else "an empty string"
                raise DataError(f"{place} holds {what}. Remove it; [] means none.")
    return [tuple(map(str, row)) for row in found]  # NumPy has its own class of strings


def _read_rows(
    values: Any,  # noqa: ANN401 (whatever a user gives)
    name: str,
    wanted: str,
    n_texts: int | None = None,
) -> list[Any]:
    """Return the rows of a list, an array or a column of a table: as many as texts, if given."""
    if hasattr(values, "__array__"):
        values = np.asarray(values)
    is_sparse = scipy.sparse.issparse(values)
    is_other = is_sparse or isinstance(values, str | bytes | Mapping | set | frozenset)
    if is_other or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        got = "a sparse matrix" if is_sparse else _show(values)
        raise DataError(f"{name} must be {wanted}, got {got}.")
    rows = list(values)
    _check_length(len(rows), len(rows) if n_texts is None else n_texts, name)
    return rows


def _show(value: object) -> str:
    """Write a value as Python does, shortened, on one line."""
    return " ".join(reprlib.repr(value.item() if isinstance(value, np.generic) else value).split())


def _check_length(n_rows: int, n_texts: int, name: str) -> None:
    if n_rows != n_texts:
        raise DataError(
            f"{name} must have a row for each text: there are {n_texts:,} texts, {n_rows:,} rows."
        )
