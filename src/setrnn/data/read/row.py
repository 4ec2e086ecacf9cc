"""Turn one row into one Example, and say what is wrong with a row."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from setrnn.data.example import Example, KnownLabels, rename_labels
from setrnn.data.read.lines import RowProblem
from setrnn.data.read.reader import BadRows, ReadOptions
from setrnn.errors import DataError, printable, shown

Row = TypeVar("Row")

N_COLUMNS, N_FIELDS = 1_000, 20  # that are listed: of a table, and of one row of JSON Lines

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
            bad_rows.add(f"{place} {number}", problem)
            continue
        if example is not None:
            yield example


def example_maker(options: ReadOptions, stem: str) -> Callable[[Mapping[str, Any], int], Example]:
    """Return a function that turns a row and its number into an Example, and checks its values.

    A row without an id is named after its file and number: `train-41`.
    """
    id_field, text_fields = options.id_field, options.text_fields
    labels_field, features_field = options.labels_field, options.features_field
    is_joined, require_labels = len(text_fields) > 1, options.require_labels
    incomplete = {options.unknown_field, options.complete_field} if require_labels else set()

    def make(row: Mapping[str, Any], number: int) -> Example:
        row_id = row.get(id_field)
        parts = [_text(row, name, is_joined) for name in text_fields]
        labels, features = row.get(labels_field), row.get(features_field)
        if labels is None and require_labels and labels_field not in row:
            raise _missing(row, labels_field, "Add it ([] for none)", "--labels-field")
        example = Example(
            f"{stem}-{number}" if row_id is None else id_text(id_field, row_id),
            "\n".join(part for part in parts if part),
            () if labels is None and not require_labels else strings(labels_field, labels),
            () if features is None else strings(features_field, features),
            _known_labels(row, options) if options.known_fields else None,
            row if options.keep_columns else None,
        )
        if not incomplete.isdisjoint(row):
            example = _add_unknown(example, row, options)
        _check_characters(example, options)
        return example

    return make


def check_columns(path: Path, options: ReadOptions, columns: list[str]) -> None:
    """Raise if a table lacks a required column, or has a column twice that is read.

    The columns of ids and features are optional, unless the user named them.
    """
    wanted = [(name, "--text-field") for name in options.text_fields]
    for kind in ("labels", "id", "features", "unknown", "complete", "present", "absent"):
        name = getattr(options, f"{kind}_field")
        is_named = name != getattr(ReadOptions, f"{kind}_field")
        if is_named or (kind == "labels" and options.require_labels):
            wanted.append((name, f"--{kind}-field"))
    for name, flag in wanted:
        if name not in columns:
            near = [f"Did you mean '{each}'? " for each in near_names(name, columns)[:1]]
            raise DataError(
                f"{path} has no column '{name}': it has {list_names(name, columns)}. "
                f"{printable(''.join(near))}Name the right one with {flag}."
            )
    for name in (options.id_field, *options.text_fields, *options.list_fields):
        if columns.count(name) > 1:
            raise DataError(f"{path} has two columns '{printable(name)}'. Rename or remove one.")


def near_names(name: str, columns: Iterable[str]) -> list[str]:
    """Return the columns that are spelled like a name, or usually hold the same.

    Example:
        >>> near_names("text", ["show_id", "Text ", "listed_in", "description"])
        ['Text ', 'description']
    """
    plain = {column: column.strip().casefold() for column in columns}
    spelled = difflib.get_close_matches(name.casefold(), plain.values(), n=len(plain) or 1)
    inside = (each for each in plain.values() if name.casefold() in each)
    near = [*spelled, *inside, *USUAL_NAMES.get(name, ())]
    return sorted(
        (each for each in plain if plain[each] in near), key=lambda e: near.index(plain[e])
    )


def list_names(name: str, columns: Iterable[str], n_shown: int = N_COLUMNS) -> str:
    """List columns, near ones first and whole.

    Example:
        >>> list_names("labels", ["id", "title", "genres"])
        'genres, id, title'
    """
    columns = list(columns)
    near = near_names(name, columns)
    names = [*near, *(each for each in columns if each not in near)]
    n_shown = max(n_shown, len(near))
    more = f" and {len(names) - n_shown} more" if len(names) > n_shown else ""
    return printable(", ".join(names[:n_shown]) or "none") + more


def id_text(name: str, value: object) -> str:
    """Return an id, a string or a whole number, as text."""
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    raise RowProblem(
        f"'{name}' must be a string or a whole number, got {shown(value)}. Write a string."
    )


def strings(name: str, values: Any) -> tuple[str, ...]:  # noqa: ANN401 - it comes from the user
    """Return a list of strings as a tuple; raise RowProblem if it is anything else."""
    if type(values) is not list:
        advice = 'Write ["..."], or [] for none.'
        if isinstance(values, str) and values:
            advice = f"Write [{shown(values)}]."
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


def _text(row: Mapping[str, Any], name: str, may_be_null: bool) -> str:
    """Return a text, or one of several: of these, each may be null."""
    text = row.get(name)
    if type(text) is str:
        return text
    if name not in row:
        raise _missing(row, name, "Add it", "--text-field")
    if text is None and may_be_null:
        return ""
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
    unknown, complete = row.get(options.unknown_field), row.get(options.complete_field)
    names = () if unknown is None else strings(options.unknown_field, unknown)
    if both := set(names).intersection(example.labels):
        raise RowProblem(
            f"{shown(min(both))} is in '{options.labels_field}' and in '{options.unknown_field}'. "
            "Remove it from one."
        )
    return replace(example, unknown=names, complete=_truth(options.complete_field, complete))


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
    fields = list_names(name, row, N_FIELDS)
    return RowProblem(
        f"'{name}' is missing, the row has {fields}. {advice}, or name another field with {flag}."
    )


def _check_characters(example: Example, options: ReadOptions) -> None:
    """Raise if a string holds NUL or cannot be written as UTF-8 (a lone surrogate)."""
    strings_of = {
        options.id_field: (example.id,),
        options.text_field: (example.text,),
        options.labels_field: example.labels,
        options.features_field: example.features,
        options.unknown_field: example.unknown,
    }
    for name, values in strings_of.items():
        for value in values:
            if "\0" in value:
                raise RowProblem(f"'{name}' holds a NUL character (\\u0000). Remove it.")
            if value.isascii():
                continue
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise RowProblem(
                    f"'{name}' holds half a character (\\u{ord(value[error.start]):04x}), which "
                    "UTF-8 cannot write. Remove it, or write the whole surrogate pair."
                ) from None
