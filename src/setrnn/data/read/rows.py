"""How a row of any format becomes an Example: its values are found and checked."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from setrnn.data.example import Example, KnownLabels, rename_labels
from setrnn.data.read.lines import RowProblem, Unlabelled, check_characters, check_length
from setrnn.data.read.reader import COMPLETE, UNKNOWN, BadRows, ReadOptions
from setrnn.errors import MOST_NAMES, DataError, list_some, printable, shown

Row = TypeVar("Row")

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
        except Unlabelled:
            bad_rows.first_unlabelled = bad_rows.first_unlabelled or f"{place} {number}"
            bad_rows.n_unlabelled += 1
            continue
        except RowProblem as problem:
            bad_rows.add(f"{place} {number}", problem)
            continue
        if example is not None:
            yield example


def example_maker(options: ReadOptions, stem: str) -> Callable[[Mapping[str, Any], int], Example]:
    """Return a function that turns a row and its number into an Example, and checks its values.

    A row without an id is named after its file and number: `train-41`.
    """
    text_fields, labels_field = options.text_fields, options.labels_field
    id_field, features_field = options.id_field, options.features_field
    is_joined, has_known = len(text_fields) > 1, bool(options.known_fields)

    def make(row: Mapping[str, Any], number: int) -> Example:
        row_id = row.get(id_field)
        texts = [_text(row, name, is_joined) for name in text_fields]
        check_length(sum(map(len, texts)), options.max_row_bytes)
        unknown: tuple[str, ...] = ()
        is_complete = True
        if not options.require_labels:
            labels = _strings_or_none(row, labels_field)
        elif labels_field in row:
            labels = _strings_or_none(row, labels_field)
            unknown = _strings_or_none(row, UNKNOWN)
            is_complete = _is_complete(row.get(COMPLETE))
            is_said = row[labels_field] is not None or unknown or not is_complete
            if not is_said and options.unlabelled_rows != "empty":
                raise Unlabelled("has no labels.")
        else:
            raise _missing(row, labels_field, "Add it ([] for none)", "--labels-field")
        features = _strings_or_none(row, features_field)
        try:
            example = Example(
                f"{stem}-{number}" if row_id is None else id_text(id_field, row_id),
                "\n".join(filter(None, texts)),
                labels,
                features,
                _known_labels(row, options) if has_known else None,
                row if options.keep_columns else None,
                unknown,
                is_complete,
            )
        except DataError as error:
            raise RowProblem(str(error)) from error
        check_characters((example.id, example.text, *labels, *features, *unknown))
        return example

    return make


def check_columns(path: Path, options: ReadOptions, columns: list[str]) -> None:
    """Raise if a table lacks a required column, or has a column twice that is read.

    The columns of ids and features are optional, unless the user named them.
    """
    wanted = [(name, "--text-field") for name in options.text_fields]
    for kind in ("labels", "id", "features", "present", "absent"):
        name = getattr(options, f"{kind}_field")
        is_named = name != getattr(ReadOptions, f"{kind}_field")
        if is_named or (kind == "labels" and options.require_labels):
            wanted.append((name, f"--{kind}-field"))
    for name, flag in wanted:
        if name not in columns:
            raise DataError(
                f"{path} has no column '{name}': it has {suggest_names(name, columns)} Name the "
                f"right one with {flag}."
            )
    for name in options.fields:
        if columns.count(name) > 1:
            raise DataError(f"{path} has two columns '{printable(name)}'. Rename or remove one.")


def suggest_names(name: str, columns: Iterable[str]) -> str:
    """List columns, and suggest one that is spelled like a name, or usually holds the same.

    Example:
        >>> suggest_names("text", ["show_id", "listed_in", "description"])
        "show_id, listed_in, description. Did you mean 'description'?"
    """
    columns = list(columns)
    plain = {column.strip().casefold(): column for column in columns}
    near = difflib.get_close_matches(name.casefold(), plain, n=1)
    near += [each for each in plain if name.casefold() in each]
    near += [each for each in USUAL_NAMES.get(name, ()) if each in plain]
    advice = f" Did you mean '{plain[near[0]]}'?" if near else ""
    return printable(f"{list_some(columns, MOST_NAMES) or 'none'}.{advice}")


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


def _strings_or_none(row: Mapping[str, Any], name: str | None) -> tuple[str, ...]:
    """Return the strings of a field that may be null or missing."""
    values = None if name is None else row.get(name)
    return () if values is None else strings(str(name), values)


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
        rename_labels(_strings_or_none(row, name), options.label_map)
        for name in (options.present_field, options.absent_field)
    )
    known = KnownLabels(present, absent)
    if options.check_known is not None:
        options.check_known(known)
    return known


def _is_complete(value: object) -> bool:
    """Return whether a value says that a document is complete; a missing one does."""
    if value is None or type(value) is bool:
        return value is not False
    found = _TRUTHS.get(value.strip().lower()) if type(value) is str else None
    if found is None:
        raise RowProblem(
            f"'{COMPLETE}' must be true or false, got {shown(value)}. Write one of these."
        )
    return found


def _missing(row: Mapping[str, Any], name: str, advice: str, flag: str) -> RowProblem:
    return RowProblem(
        f"'{name}' is missing, the row has {suggest_names(name, row)} {advice}, or name another "
        f"field with {flag}."
    )
