"""From one row to one Example, and the words for what is wrong with a row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.formats.reader import KnownFields, ReadOptions
from setrnn.data.labels import problem_with_known
from setrnn.errors import BadRowError, DataError, nearest_name

_MAX_SHOWN = 40


class RowProblem(Exception):  # noqa: N818 - a finding; the reader adds the place and makes the error
    """What is wrong with a row, and the way out; the place is added by the reader."""


def bad_line(path: Path, number: int, problem: RowProblem) -> BadRowError:
    """Say where in a file the problem is."""
    return BadRowError(f"{printable(path.name)} line {number}", str(problem))


def example_maker(options: ReadOptions, stem: str) -> Callable[[Mapping[str, Any], int], Example]:
    """Build the function that turns a row and its number into an Example.

    Types are checked; characters are not (see `check_characters`). A row without an id is
    called after its file and number: `train-41`.
    """
    id_field, text_fields = options.id_field, options.text_fields
    labels_field, features_field = options.labels_field, options.features_field
    lone_text_field = text_fields[0] if len(text_fields) == 1 else None
    require_labels, known = options.require_labels, options.known

    def make(row: Mapping[str, Any], number: int) -> Example:
        row_id = row.get(id_field)
        if type(row_id) is not str:
            row_id = f"{stem}-{number}" if row_id is None else id_text(id_field, row_id)
        text = row.get(lone_text_field) if lone_text_field else None
        if type(text) is not str:
            text = "\n".join(_text(row, name) for name in text_fields)
        labels, features = row.get(labels_field), row.get(features_field)
        if labels is None and require_labels:
            raise _missing_labels(row, labels_field)
        example = Example(
            row_id,
            text,
            () if labels is None else strings(labels_field, labels),
            () if features is None else strings(features_field, features),
        )
        return example if known is None else _with_known(example, row, known)

    return make


def check_characters(example: Example, options: ReadOptions) -> None:
    """Refuse what cannot be written as UTF-8 (lone surrogates), and NUL."""
    _check_string(options.id_field, example.id)
    _check_string(options.text_field, example.text)
    for label in example.labels:
        _check_string(options.labels_field, label)
    for feature in example.features:
        _check_string(options.features_field, feature)


def decode(line: bytes) -> str:
    """Decode UTF-8, or say which byte is wrong."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise RowProblem(not_utf8(error)) from None


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say which byte is not UTF-8."""
    byte, column = error.object[error.start], error.start + 1
    return f"is not UTF-8 (byte 0x{byte:02x} at column {column}). Save the file as UTF-8."


def too_long(max_bytes: int) -> RowProblem:
    """Say that a row is over the limit."""
    return RowProblem(
        f"is longer than {max_bytes:,} bytes. Split the document, or raise max_row_bytes."
    )


def nul_byte() -> RowProblem:
    """Say that a row holds a NUL byte."""
    return RowProblem("holds a NUL byte. Remove it, and save the file as UTF-8 text.")


def shown(value: object) -> str:
    """Write a value as JSON has it, shortened, on one line."""
    if isinstance(value, str):
        cut = value if len(value) <= _MAX_SHOWN else value[:_MAX_SHOWN] + "..."
        return printable(json.dumps(cut, ensure_ascii=False))
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, bool | float) or value is None:
        return json.dumps(value)
    text = str(value)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def printable(text: str) -> str:
    """Escape what would break a line or a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def check_columns(path: Path, options: ReadOptions, columns: Iterable[str]) -> None:
    """Refuse a table that lacks a column asked for.

    The id and the features are optional under their usual names, not under a name the user gave.
    """
    columns = list(columns)
    wanted = [(name, "--text-field") for name in options.text_fields]
    if options.require_labels or options.labels_field != ReadOptions.labels_field:
        wanted.append((options.labels_field, "--labels-field"))
    if options.id_field != ReadOptions.id_field:
        wanted.append((options.id_field, "--id-field"))
    if options.features_field != ReadOptions.features_field:
        wanted.append((options.features_field, "--features-field"))
    if options.known is not None:
        wanted.extend(options.known.flags.items())
    for name, flag in wanted:
        if name not in columns:
            nearest = nearest_name(name, columns)
            guess = f" {printable(nearest)}" if nearest.startswith("Did") else ""
            raise DataError(
                f"{path} has no column '{name}': it has {_listed(columns)}.{guess} "
                f"Name the right one with {flag}."
            )


def id_text(name: str, value: object) -> str:
    """Return an id as text: a string, or a whole number."""
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    raise RowProblem(
        f"'{name}' must be a string or a whole number, got {shown(value)}. Write a string."
    )


def _text(row: Mapping[str, Any], name: str) -> str:
    text = row.get(name)
    if type(text) is str:
        return text
    if name not in row:
        raise RowProblem(
            f"'{name}' is missing, the row has {_listed(row)}. Add it, or name another with "
            "--text-field."
        )
    advice = 'Write "" for an empty text.' if text is None else "Write it in quotes."
    raise RowProblem(f"'{name}' must be a string, got {shown(text)}. {advice}")


def _with_known(example: Example, row: Mapping[str, Any], known: KnownFields) -> Example:
    """Add the labels known beforehand; a row without the field knows none."""
    present, absent = (
        () if name is None or row.get(name) is None else strings(name, row[name])
        for name in (known.present_field, known.absent_field)
    )
    problem = problem_with_known(known.labels, present, absent, known.max_labels)
    if problem is not None:
        raise RowProblem(problem)
    return replace(example, present=present, absent=absent)


def _missing_labels(row: Mapping[str, Any], name: str) -> RowProblem:
    if name in row:
        return RowProblem(
            f"'{name}' must be a list of strings, got null. Write [] for a document without labels."
        )
    return RowProblem(
        f"'{name}' is missing, the row has {_listed(row)}. Add it ([] for none), or name another "
        "with --labels-field."
    )


def strings(name: str, values: Any) -> tuple[str, ...]:  # noqa: ANN401 - it comes from the user
    """Return a list of strings, or say what it is instead."""
    if type(values) is not list:
        if isinstance(values, str) and values:
            raise RowProblem(
                f"'{name}' must be a list of strings, got {shown(values)}. Write [{shown(values)}]."
            )
        raise RowProblem(
            f"'{name}' must be a list of strings, got {shown(values)}. "
            'Write ["..."], or [] for none.'
        )
    for value in values:
        if type(value) is not str:
            advice = "Remove it." if value is None else "Write each as a string in quotes."
            raise RowProblem(
                f"'{name}' must be a list of strings, got {shown(value)} in it. {advice}"
            )
        if not value:
            raise RowProblem(f"'{name}' holds an empty string. Remove it; [] means none.")
    return tuple(values)


def _check_string(name: str, text: str) -> None:
    if "\0" in text:
        raise RowProblem(f"'{name}' holds a NUL character (\\u0000). Remove it.")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise RowProblem(
            f"'{name}' holds half a character (\\u{code:04x}), which UTF-8 cannot write. "
            "Remove it, or write the whole surrogate pair."
        ) from None


def _listed(names: Iterable[str]) -> str:
    text = printable(", ".join(names)) or "none"
    return text if len(text) <= 2 * _MAX_SHOWN else text[: 2 * _MAX_SHOWN] + "..."
