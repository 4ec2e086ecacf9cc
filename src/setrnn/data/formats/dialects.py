"""Recognise the delimiter of a table from its first lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Sequence

DELIMITERS = (",", ";", "\t", "|")
N_LINES = 20  # looked at

_SPREADSHEET_HINT = re.compile(r'"?sep=(.)"?\s*\Z', re.IGNORECASE)


def named_delimiter(first_line: str) -> str | None:
    """Return the delimiter that a spreadsheet wrote above the header, as in `sep=;`."""
    found = _SPREADSHEET_HINT.match(first_line)
    return found[1] if found else None


def find_delimiter(lines: Sequence[str], wanted: Collection[str], usual: str = ",") -> str:
    """Return the delimiter under which the first lines look most like a table.

    Args:
        lines: the first lines, the header first.
        wanted: the columns to read; the header probably names them.
        usual: the delimiter to prefer.

    Example:
        >>> find_delimiter(["id;text;labels", "1;One, two, three;x"], ["text", "labels"])
        ';'
    """

    def rate(delimiter: str) -> tuple[int, bool, int]:
        rows = _split(lines, delimiter)
        if not rows:
            return 0, False, 0
        header = {cell.strip() for cell in rows[0]}
        whole = rows[1:-1] or rows[1:]  # the last one may continue behind these lines
        n_cells = len(rows[0])
        is_regular = n_cells > 1 and all(len(row) == n_cells for row in whole)
        return len(header.intersection(wanted)), is_regular, n_cells

    return max(dict.fromkeys([usual, *DELIMITERS]), key=rate)


def find_header(lines: Sequence[str], wanted: Collection[str]) -> list[str]:
    """Return the cells of the first line, if the lines are a table."""
    rows = _split(lines, find_delimiter(lines, wanted))
    return [cell.strip() for cell in rows[0]] if rows else []


def _split(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return []
