"""Turn one row into one Example, and say what is wrong with a row."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from setrnn.data.example import Example, KnownLabels, rename_labels
from setrnn.data.read.encodings import guess_encoding
from setrnn.data.read.label_cells import split_joined
from setrnn.data.read.printing import printable, shown
from setrnn.data.read.reader import BadRows, ReadOptions
from setrnn.errors import BadRowError, DataError

Row = TypeVar("Row")

N_COLUMNS, N_FIELDS = 1_000, 20  # that are listed: of a table, and of one row of JSON Lines
LONGEST = 60  # characters of a name that is not near

# What such columns are often called.
USUAL_NAMES = {
    "text": ("text", "description", "body", "content", "abstract", "summary", "title", "message"),
    "labels": (
        *("labels", "label", "tags", "genres", "genre", "categories", "category", "topics"),
        *("topic", "keywords", "subjects", "classes", "listed_in"),
    ),
    "id": ("id", "key", "identifier", "uid", "number"),
    "features": ("features", "feature"),
}

# What a cell may say; an empty one says nothing.
_TRUTHS = {"": True, "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class RowProblem(Exception):  # noqa: N818 - not an error yet: the reader adds the place
    """What is wrong with a row, and how to correct it; the reader adds the place."""


def bad_line(path: Path, number: int, problem: RowProblem) -> BadRowError:
    """Return the error for a problem in one line of a file."""
    return BadRowError(f"{printable(path.name)} line {number}", str(problem))


def read_rows(
    rows: Iterable[tuple[int, Row | RowProblem]],
    make: Callable[[Row, int], Example | None],
    bad_rows: BadRows,
    place: str,
) -> Iterator[Example]:
    """Turn numbered rows into Examples; `place` says what the numbers count: "train.jsonl line".

    `make` raises RowProblem if a row is bad, and returns None to leave it out. A row that cannot
    even be read is a RowProblem itself.
    """
    for number, row in rows:
        try:
            if isinstance(row, RowProblem):
                raise row
            example = make(row, number)
        except RowProblem as problem:
            bad_rows.add(BadRowError(f"{place} {number}", str(problem)))
            continue
        if example is not None:
            yield example


def example_maker(
    options: ReadOptions, stem: str, is_decoded: bool = False
) -> Callable[[Mapping[str, Any], int], Example]:
    """Return a function that turns a row and its number into an Example, and checks its types.

    The characters are checked unless the whole row was decoded from UTF-8 (`is_decoded`). A row
    without an id is named after its file and number: `train-41`.
    """
    id_field, text_fields = options.id_field, options.text_fields
    labels_field, features_field = options.labels_field, options.features_field
    lone_text_field = text_fields[0] if len(text_fields) == 1 else None
    require_labels, has_known = options.require_labels, bool(options.known_fields)
    unknown_name, complete_name = options.unknown_name, options.complete_name

    def make(row: Mapping[str, Any], number: int) -> Example:
        row_id = row.get(id_field)
        if type(row_id) is not str:
            row_id = f"{stem}-{number}" if row_id is None else id_text(id_field, row_id)
        text = row.get(lone_text_field) if lone_text_field else None
        if type(text) is not str:
            parts = (_text(row, name, lone_text_field is None) for name in text_fields)
            text = "\n".join(part for part in parts if part)
        labels, features = row.get(labels_field), row.get(features_field)
        if labels is None and require_labels and labels_field not in row:
            raise _missing(row, labels_field, "Add it ([] for none)", "--labels-field")
        example = Example(
            row_id,
            text,
            () if labels is None and not require_labels else strings(labels_field, labels),
            () if features is None else strings(features_field, features),
            _known_labels(row, options) if has_known else None,
            row if options.keep_columns else None,
        )
        if require_labels and (unknown_name in row or complete_name in row):
            example = _add_unknown(example, row, options)
        if not is_decoded:
            check_characters(example, options)
        return example

    return make


def check_characters(example: Example, options: ReadOptions) -> None:
    """Raise if a string holds NUL or cannot be written as UTF-8 (a lone surrogate)."""
    for name, strings_of in (
        (options.id_field, (example.id,)),
        (options.text_field, (example.text,)),
        (options.labels_field, example.labels),
        (options.features_field, example.features),
        (options.unknown_name, example.unknown),
    ):
        for each in strings_of:
            _check_string(name, each)


def decode(line: bytes) -> str:
    """Decode UTF-8; raise RowProblem with the first wrong byte, or if there is a NUL byte."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        byte, column = line[error.start], error.start + 1
        raise RowProblem(
            f"is not UTF-8 (byte 0x{byte:02x} at column {column}) but probably "
            f"{guess_encoding(line)}. Give --encoding {guess_encoding(line)}, or save the file as "
            "UTF-8."
        ) from None
    if "\0" in text:
        raise nul_byte(line)
    return text


def too_long(max_bytes: int) -> RowProblem:
    """Return the problem of a row over the limit."""
    return RowProblem(
        f"is longer than {max_bytes:,} bytes. Split the document, or raise max_row_bytes."
    )


def nul_byte(line: bytes = b"") -> RowProblem:
    """Return the problem of a row that holds a NUL byte."""
    likely = guess_encoding(line) if line else ""
    if likely.startswith("utf-16"):
        return RowProblem(f"holds NUL bytes: it is probably UTF-16. Give --encoding {likely}.")
    return RowProblem("holds a NUL byte. Remove it, and save the file as UTF-8 text.")


def check_columns(path: Path, options: ReadOptions, columns: Iterable[str]) -> None:
    """Raise if a table lacks a required column.

    The columns of ids and features are optional, unless the user named them.
    """
    columns = list(columns)
    wanted = [(name, "--text-field") for name in options.text_fields]
    for kind in ("labels", "id", "features", "unknown", "complete", "present", "absent"):
        name = getattr(options, f"{kind}_field")
        is_named = name != getattr(ReadOptions, f"{kind}_field")
        if is_named or (kind == "labels" and options.require_labels):
            wanted.append((name, f"--{kind}-field"))
    for name, flag in wanted:
        if name not in columns:
            raise DataError(
                f"{path} has no column '{name}': it has {printable(list_names(name, columns))}. "
                f"{printable(advise_name(name, columns))}Name the right one with {flag}."
            )


def near_names(name: str, columns: Iterable[str]) -> list[str]:
    """Return the columns that are spelled like a name, or usually hold the same.

    Example:
        >>> near_names("text", ["show_id", "Text ", "listed_in", "description"])
        ['Text ', 'description']
    """
    plain = {column: column.strip().casefold() for column in columns}
    wanted = name.casefold()
    spelled = difflib.get_close_matches(wanted, plain.values(), n=len(plain) or 1)
    usual = USUAL_NAMES.get(name, ())
    ranked = [*spelled, *(each for each in plain.values() if wanted in each), *usual]
    by_plain: dict[str, list[str]] = {}
    for column, each in plain.items():
        by_plain.setdefault(each, []).append(column)
    return [column for each in dict.fromkeys(ranked) for column in by_plain.get(each, ())]


def list_names(name: str, columns: Iterable[str], n_shown: int = N_COLUMNS) -> str:
    """List columns, near ones first and never shortened.

    Example:
        >>> list_names("labels", ["id", "title", "genres"])
        'genres, id, title'
    """
    columns = list(columns)
    near = near_names(name, columns)
    others = [each for each in columns if each not in near]
    n_others = max(n_shown - len(near), 0)
    short = [each if len(each) <= LONGEST else f"{each[:LONGEST]}..." for each in others[:n_others]]
    more = f" and {len(others) - n_others} more" if len(others) > n_others else ""
    return (", ".join([*near, *short]) or "none") + more


def advise_name(name: str, columns: Iterable[str]) -> str:
    """Return "Did you mean ...? " if a column is spelled like a name or usually holds the same."""
    near = near_names(name, columns)
    return f"Did you mean '{near[0]}'? " if near else ""


def id_text(name: str, value: object) -> str:
    """Return an id, a string or a whole number, as text."""
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    raise RowProblem(
        f"'{name}' must be a string or a whole number, got {shown(value)}. Write a string."
    )


def _text(row: Mapping[str, Any], name: str, may_be_null: bool) -> str:
    """Return a text, or one of several: of these, each may be null."""
    text = row.get(name)
    if type(text) is str:
        return text
    if text is None and may_be_null and name in row:
        return ""
    if name not in row:
        raise _missing(row, name, "Add it", "--text-field")
    advice = 'Write "" for an empty text.' if text is None else "Write it in quotes."
    raise RowProblem(f"'{name}' must be a string, got {shown(text)}. {advice}")


def _known_labels(row: Mapping[str, Any], options: ReadOptions) -> KnownLabels:
    """Return the known labels of a row; a field that is missing holds none."""
    present, absent = (
        ()
        if name is None or row.get(name) is None
        else rename_labels(strings(name, row[name]), options.label_map)
        for name in (options.present_field, options.absent_field)
    )
    known = KnownLabels(present, absent)
    if options.check_known is not None:
        try:
            options.check_known(known)
        except DataError as error:
            raise RowProblem(str(error)) from error
    return known


def _add_unknown(example: Example, row: Mapping[str, Any], options: ReadOptions) -> Example:
    """Return the document with the labels that its row says are not known."""
    unknown, complete = row.get(options.unknown_name), row.get(options.complete_name)
    names = () if unknown is None else strings(options.unknown_name, unknown)
    is_complete = _truth(options.complete_name, complete)
    if not names and is_complete:
        return example
    for name in names:
        if name in example.labels:
            raise RowProblem(
                f"{shown(name)} is in '{options.labels_field}' and in '{options.unknown_name}'. "
                "Remove it from one."
            )
    return replace(example, unknown=names, complete=is_complete)


def _truth(name: str, value: object) -> bool:
    """Return whether a value says true; a missing one does."""
    if value is None or type(value) is bool:
        return value is not False
    found = _TRUTHS.get(value.strip().lower()) if type(value) is str else None
    if found is None:
        raise RowProblem(
            f"'{name}' must be true or false, got {shown(value)}. Write one of these, or name "
            "another field with --complete-field."
        )
    return found


def _missing(row: Mapping[str, Any], name: str, advice: str, flag: str) -> RowProblem:
    fields = printable(list_names(name, row, N_FIELDS))
    return RowProblem(
        f"'{name}' is missing, the row has {fields}. {advice}, or name another field with {flag}."
    )


def strings(name: str, values: Any) -> tuple[str, ...]:  # noqa: ANN401 - it comes from the user
    """Return a list of strings as a tuple; raise RowProblem if it is anything else."""
    if type(values) is not list:
        advice = 'Write ["..."], or [] for none.'
        if isinstance(values, str) and values:
            advice = f"Write [{', '.join(map(shown, split_joined(values)))}]."
        raise RowProblem(f"'{name}' must be a list of strings, got {shown(values)}. {advice}")
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
