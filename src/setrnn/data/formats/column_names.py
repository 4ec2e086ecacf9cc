"""Find the columns that a missing one was probably meant to be, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

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
    shown = [each if len(each) <= LONGEST else f"{each[:LONGEST]}..." for each in others[:n_others]]
    more = f" and {len(others) - n_others} more" if len(others) > n_others else ""
    return (", ".join([*near, *shown]) or "none") + more


def advise_name(name: str, columns: Iterable[str]) -> str:
    """Return "Did you mean ...? " if a column is spelled like a name or usually holds the same."""
    near = near_names(name, columns)
    return f"Did you mean '{near[0]}'? " if near else ""
