"""Read a file of parents: rows of a label and its parent, as CSV or TSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read.delimited import read_cells
from setrnn.data.read.printing import printable, shown
from setrnn.data.read.reader import EMBEDDED, EMBEDDED_FOLDER
from setrnn.data.read.row import RowProblem, bad_line
from setrnn.errors import DataError

LABEL, PARENT = "label", "parent"
# A file of parents, "newsroom" for those of the embedded corpus, or the parents themselves.
Parents: TypeAlias = str | Path | Mapping[str, str | list[str] | tuple[str, ...]] | Hierarchy
EMBEDDED_FILE = EMBEDDED_FOLDER / "parents.csv"


def read_hierarchy(path: str | Path, encoding: str | None = None) -> Hierarchy:
    """Read a file of parents: two columns, label and parent, in CSV or TSV.

    The first line may name the columns. A label with several parents has several rows; one with an
    empty parent is at the top. "newsroom" names the file of the embedded corpus.

    Example:
        >>> read_hierarchy("newsroom").ancestors("copper")
        ('commodities', 'markets', 'economy')
    """
    place = EMBEDDED_FILE if path == EMBEDDED else Path(path)
    rows: dict[tuple[str, str], int] = {}  # their lines
    for line, label, parent in _read_pairs(place, encoding):
        where = f"{printable(place.name)} line {line}"
        if not label:
            raise DataError(f"{where}: the label is empty. Name a label, or remove the row.")
        if label == parent:
            raise DataError(f"{where}: {shown(label)} is its own parent. Remove the row.")
        first = rows.setdefault((label, parent), line)
        if first != line:
            raise DataError(
                f"{where}: {shown(label)} with the parent {shown(parent)} is in line {first} too. "
                "Remove one."
            )
    parents: dict[str, list[str]] = {}
    for label, parent in rows:
        if parent:
            parents.setdefault(label, []).append(parent)
    if not parents:
        raise DataError(f"{place} names no parent. Write rows of {LABEL},{PARENT}.")
    try:
        return Hierarchy(parents)
    except DataError as error:
        raise DataError(f"{printable(place.name)}: {error}") from None


def make_hierarchy(
    parents: Parents | None, close_labels: bool = False, encoding: str | None = None
) -> Hierarchy | None:
    """Return a hierarchy from a file or from the parents of labels; None if there is none."""
    if parents is None:
        if close_labels:
            raise DataError("Only a hierarchy can close labels. Name its file: --hierarchy FILE.")
        return None
    if isinstance(parents, str | Path):
        parents = read_hierarchy(parents, encoding)
    if isinstance(parents, Mapping):
        parents = Hierarchy(parents)
    if not isinstance(parents, Hierarchy):
        raise DataError(
            f"A hierarchy is a file, a dict of parents or setrnn.read_hierarchy(FILE), got "
            f"{type(parents).__name__}."
        )
    return replace(parents, closes_labels=True) if close_labels else parents


def _read_pairs(path: Path, encoding: str | None) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the label and the parent of each row."""
    places, n_cells = (0, 1), 2
    for number, (line, cells) in enumerate(read_cells(path, (LABEL, PARENT), encoding)):
        if isinstance(cells, RowProblem):
            raise bad_line(path, line, cells) from None
        names = [cell.strip() for cell in cells]
        lower = [name.lower() for name in names]
        if number == 0 and {LABEL, PARENT} <= set(lower):
            places, n_cells = (lower.index(LABEL), lower.index(PARENT)), len(names)
            continue
        if len(names) != n_cells:
            raise DataError(
                f"{printable(path.name)} line {line}: expected {n_cells} cells, got {len(names)}. "
                f"Write {LABEL},{PARENT}, and quote names that have a comma."
            )
        yield line, names[places[0]], names[places[1]]
