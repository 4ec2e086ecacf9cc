"""Split cells that hold several labels, and notice a separator that was not meant."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection

ONE_LABEL = "none"  # as a separator: each cell is one label
SEPARATORS = (",", "|", ";", "\t", "\n")  # that files use

N_LOOKED_AT = 1000  # cells
LONGEST_LIST = 100_000  # characters
MOST_STRAY = 0.05  # cells with the chosen separator, for each with another one
LEAST_SHARE = 0.3  # of the cells with a separator, if splitting them does not give fewer labels


def split_cell(cell: str, separator: str) -> list[str]:
    """Return the parts of a cell, without spaces around them; empty parts are left out.

    A cell that is a list of strings, as JSON and Python write it, is that list.

    Example:
        >>> split_cell("Dramas, Comedies", ","), split_cell("Home, Garden", "none")
        (['Dramas', 'Comedies'], ['Home, Garden'])
        >>> split_cell("['Dramas', 'Comedies']", ";"), split_cell("Dramas;", ";")
        (['Dramas', 'Comedies'], ['Dramas'])
    """
    if separator != ONE_LABEL and (values := read_list(cell)) is not None:
        return values
    parts = (
        [cell] if separator == ONE_LABEL else cell.split(None if separator == " " else separator)
    )
    return [stripped for part in parts if (stripped := part.strip())]


def joining_separator(separator: str) -> str:
    """Return the separator to join labels by, whatever the input had."""
    return ";" if separator == ONE_LABEL else separator


def read_list(cell: str) -> list[str] | None:
    """Return the strings of a list as JSON or Python write it; None for any other cell."""
    if cell[:1] != "[" or cell[-1:] != "]" or len(cell) > LONGEST_LIST:
        return None
    try:
        values = ast.literal_eval(cell)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    is_list = isinstance(values, list) and all(isinstance(each, str) for each in values)
    return [stripped for each in values if (stripped := each.strip())] if is_list else None


def find_separator(cells: Collection[str]) -> str | None:
    """Return the separator that cells of labels seem to have; None if each is one label.

    A separator is one that many cells hold, or that turns them into fewer different labels.

    Example:
        >>> find_separator(["Dramas, Comedies", "Dramas", "Comedies"])
        ','
        >>> find_separator(["Dramas", "Comedies", "Sports", "Home, Garden"])
    """
    whole = Counter(cell.strip() for cell in cells)
    found = []
    for separator in SEPARATORS:
        n_holding = sum(n for cell, n in whole.items() if separator in cell)
        parts = {part for cell in whole for part in split_cell(cell, separator)}
        if n_holding and (len(parts) < len(whole) or n_holding >= LEAST_SHARE * whole.total()):
            found.append((len(parts), -n_holding, separator))
    return min(found)[2] if found else None


def split_joined(text: str) -> list[str]:
    """Split one string of labels by the first separator that it holds."""
    separator = next((each for each in SEPARATORS if each in text), ONE_LABEL)
    return split_cell(text, separator)


def show_separator(separator: str, cells: Collection[str]) -> str:
    """Write a separator as the cells hold it: with the space behind it, if there is one."""
    spaced = f"{separator} "
    n_spaced = sum(spaced in cell for cell in cells)
    return spaced if 2 * n_spaced > sum(separator in cell for cell in cells) else separator


class SeparatorCheck:
    """The first label cells of a file: is the chosen separator the one that they hold?"""

    def __init__(self, separator: str) -> None:
        self._chosen = separator
        self._cells: list[str] = []  # without the chosen separator
        self._n_chosen = 0  # cells with it
        self.is_open = separator != ONE_LABEL  # whether to look at more cells

    @property
    def is_certain(self) -> bool:
        """Whether no cell has the chosen separator."""
        return not self._n_chosen

    def add(self, cell: str) -> str | None:
        """Look at one more cell; return what is wrong once enough are seen."""
        if not cell.strip():
            return None
        if self._chosen in cell or read_list(cell) is not None:
            self._n_chosen += 1
        else:
            self._cells.append(cell)
        is_enough = self._n_chosen + len(self._cells) == N_LOOKED_AT
        return self.find_problem() if is_enough else None

    def find_problem(self) -> str | None:
        """Return what is wrong with the separator, and the way out; None if nothing is."""
        if not self.is_open:
            return None
        self.is_open = False
        cells = self._cells
        meant = find_separator(cells)
        if meant is None or meant == self._chosen:
            return None
        n_meant = sum(meant in cell for cell in cells)
        if self._n_chosen > MOST_STRAY * n_meant:
            return None
        n_labels = len(set(map(str.strip, cells)))
        held = show_separator(meant, cells).replace("\t", "\\t").replace("\n", "\\n")
        option = {"\t": "$'\\t'", "\n": "$'\\n'"}.get(meant, f"'{meant}'")
        if self._n_chosen:
            return (
                f"{n_meant:,} cells of labels hold '{held}', {self._n_chosen:,} '{self._chosen}'. "
                f"Did you mean --label-separator {option}?"
            )
        where = f" in the first {N_LOOKED_AT:,} documents" if len(cells) == N_LOOKED_AT else ""
        return (
            f"{n_labels:,} labels{where}, one per document: your labels contain '{held}'. "
            f"Did you mean --label-separator {option}? If each cell is one label, give "
            f"--label-separator {ONE_LABEL}."
        )
