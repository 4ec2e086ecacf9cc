"""Files about labels: a map of other names, and the parents of a hierarchy."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from setrnn.data.disk import whole_file
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read.dataset import EMBEDDED, EMBEDDED_FOLDER
from setrnn.data.read.delimited import read_cells
from setrnn.data.read.lines import RowProblem
from setrnn.data.read.reader import ReadOptions
from setrnn.errors import DataError, printable, shown

# A file of parents, "newsroom" for those of the embedded corpus, or the parents themselves.
Parents: TypeAlias = str | Path | Mapping[str, str | list[str] | tuple[str, ...]] | Hierarchy
EMBEDDED_FILE = EMBEDDED_FOLDER / "parents.csv"


def read_label_map(path: str | Path, encoding: str | None = None) -> dict[str, str]:
    """Read a CSV file with the columns from and to; an empty cell in `to` drops a label.

    The first line may name the columns. Several labels may get the same name, which merges them.
    Names are not mapped again.
    """
    path = Path(path)
    found: dict[str, str] = {}
    for where, old, new in _read_pairs(path, ("from", "to"), encoding):
        if found.setdefault(old, new) != new:
            raise DataError(
                f"{where}: {shown(old)} becomes {shown(new)} here and {shown(found[old])} above. "
                "Remove one."
            )
    if not found:
        raise DataError(f"{path} names no label. Write rows of from,to.")
    return found


def save_label_map(label_map: Mapping[str, str], path: Path) -> None:
    """Write a CSV file that `read_label_map` reads, whole or not at all."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("from", "to"), *label_map.items()])
    with whole_file(path) as stream:
        stream.write(text.getvalue().encode())


def read_hierarchy(path: str | Path, encoding: str | None = None) -> Hierarchy:
    """Read a file of parents: two columns, label and parent, in CSV or TSV.

    The first line may name the columns. A label with several parents has several rows; one with an
    empty parent is at the top. "newsroom" names the file of the embedded corpus.

    Example:
        >>> read_hierarchy("newsroom").ancestors("copper")
        ('commodities', 'markets', 'economy')
    """
    place = EMBEDDED_FILE if path == EMBEDDED else Path(path)
    parents: dict[str, list[str]] = {}
    for _, label, parent in _read_pairs(place, ("label", "parent"), encoding):
        if parent:
            parents.setdefault(label, []).append(parent)
    if not parents:
        raise DataError(f"{place} names no parent. Write rows of label,parent.")
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


def _read_pairs(
    path: Path, columns: tuple[str, str], encoding: str | None
) -> Iterator[tuple[str, str, str]]:
    """Yield the place and the two names of each row; the first line may name the columns."""
    options = ReadOptions(text_field=",".join(columns), encoding=encoding)
    header: list[str] | None = None
    for line, cells in read_cells(path, options):
        where = f"{printable(path.name)} line {line}"
        if isinstance(cells, RowProblem):
            raise DataError(f"{where}: {cells}")
        names = [cell.strip() for cell in cells]
        if header is None:
            header = [name.lower() for name in names]
            if {*columns} <= {*header}:
                continue
            header = list(columns)
        if len(names) != len(header):
            raise DataError(
                f"{where}: expected {len(header)} cells, got {len(names)}. Write "
                f"{','.join(columns)}, and quote names that have a comma."
            )
        first, second = (names[header.index(column)] for column in columns)
        if not first:
            raise DataError(f"{where}: the {columns[0]} is empty. Name a label, or remove the row.")
        yield where, first, second
