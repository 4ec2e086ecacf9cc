"""Files about labels: other names, the parents of a hierarchy, groups, and thresholds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from setrnn.data.disk import whole_file
from setrnn.data.groups import Group
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read.dataset import EMBEDDED, EMBEDDED_FOLDER
from setrnn.data.read.delimited import read_cells
from setrnn.data.read.lines import RowProblem
from setrnn.data.read.reader import ReadOptions
from setrnn.errors import DataError, printable, shown

# A file of parents, "newsroom" for those of the embedded corpus, or the parents themselves.
Parents: TypeAlias = str | Path | Mapping[str, str | list[str] | tuple[str, ...]] | Hierarchy
GROUP_COLUMNS = ("label", "group", "rule", "n")
EMBEDDED_FILE = EMBEDDED_FOLDER / "parents.csv"


def read_label_map(path: str | Path, encoding: str | None = None) -> dict[str, str]:
    """Read a CSV file with the columns from and to; an empty cell in `to` drops a label.

    The first line may name the columns. Several labels may get the same name, which merges them.
    Names are not mapped again.
    """
    path = Path(path)
    found: dict[str, str] = {}
    for where, (old, new) in _read_rows(path, ("from", "to"), encoding):
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
    _save_rows([("from", "to"), *label_map.items()], path)


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
    for _, (label, parent) in _read_rows(place, ("label", "parent"), encoding):
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


def read_groups(path: str | Path, encoding: str | None = None) -> tuple[Group, ...]:
    """Read a file of groups: rows of label,group,rule,n in CSV or TSV.

    A rule is `at most` or `exactly`; all rows of a group have the same rule and number. The first
    line may name the columns.
    """
    path = Path(path)
    labels: dict[str, list[str]] = {}
    rules: dict[str, tuple[str, str]] = {}
    for where, (label, group, rule, n) in _read_rows(path, GROUP_COLUMNS, encoding):
        if rule not in ("at most", "exactly") or not n.isdecimal():
            raise DataError(
                f"{where}: the rule must be 'at most' or 'exactly' and n a number, got "
                f"{shown(rule)}, {shown(n)}. Write label,group,at most,1."
            )
        if rules.setdefault(group, (rule, n)) != (rule, n):
            raise DataError(
                f"{where}: group {shown(group)} has {rule} {n} here and {' '.join(rules[group])} "
                "above. Write the same in all its rows."
            )
        labels.setdefault(group, []).append(label)
    if not labels:
        raise DataError(f"{path} names no group. Write rows of {','.join(GROUP_COLUMNS)}.")
    return tuple(
        Group(own, int(rules[name][1]), rules[name][0] == "exactly", name)
        for name, own in labels.items()
    )


def read_thresholds(path: str | Path, encoding: str | None = None) -> dict[str, float]:
    """Read a CSV or TSV file of label,threshold; the first line may name the columns."""
    found: dict[str, float] = {}
    for where, (label, written) in _read_rows(Path(path), ("label", "threshold"), encoding):
        try:
            if not 0 <= (value := float(written)) <= 1:
                raise ValueError
        except ValueError:
            raise DataError(
                f"{where}: the threshold must be a number from 0 to 1, got {shown(written)}."
            ) from None
        if found.setdefault(label, value) != value:
            raise DataError(f"{where}: {shown(label)} has another threshold above. Remove one.")
    if not found:
        raise DataError(f"{path} names no label. Write rows of label,threshold.")
    return found


def save_groups(groups: Iterable[Group], path: Path) -> None:
    """Write a CSV file that `read_groups` reads, whole or not at all."""
    rows = [
        (label, each.name, "exactly" if each.exactly else "at most", each.n)
        for each in groups
        for label in each.labels
    ]
    _save_rows([GROUP_COLUMNS, *rows], path)


def _save_rows(rows: Iterable[Sequence[object]], path: Path) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    with whole_file(path) as stream:
        stream.write(text.getvalue().encode())


def _read_rows(
    path: Path, columns: tuple[str, ...], encoding: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the cells of each row; the first line may name the columns."""
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
        found = [names[header.index(column)] for column in columns]
        if not found[0]:
            raise DataError(f"{where}: the {columns[0]} is empty. Name a label, or remove the row.")
        yield where, found
