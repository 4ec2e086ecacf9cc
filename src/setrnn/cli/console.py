"""What commands print: tables to standard output, notes and warnings to standard error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from setrnn.cli.terminal import Terminal, escape_line
from setrnn.data.disk import whole_file
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES
from setrnn.metrics import LOWER_IS_BETTER, MEASURES

stdout = Terminal()
stderr = Terminal(stderr=True)


def note(message: str) -> None:
    """Print a note to standard error."""
    stderr.print(escape_line(message), markup=False, highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning to standard error."""
    line = escape_line(f"warning: {message}")
    stderr.print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def quiet(is_quiet: bool) -> Iterator[None]:
    """Print nothing meanwhile, if asked; errors are printed afterwards."""
    for each in (stdout, stderr):
        each.quiet = is_quiet
    try:
        yield
    finally:
        for each in (stdout, stderr):
            each.quiet = False


def scores_table(title: str, rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Lay out measures, one system per row; the best value of each column is bold."""
    table = Table(title=escape(title), title_justify="left")
    table.add_column("", min_width=max(map(len, rows), default=0))  # so that names are not cut
    for name in MEASURES.values():
        table.add_column(name.replace(" ", "\n"), justify="right")
    best = {
        key: (min if key in LOWER_IS_BETTER else max)(row[key] for row in rows.values())
        for key in MEASURES
    }
    for name, row in rows.items():
        cells = []
        for key in MEASURES:
            cell = f"{row[key]:.4f}" if key == "hamming_loss" else f"{row[key]:.3f}"
            is_best = len(rows) > 1 and row[key] == best[key]
            cells.append(f"[bold]{cell}[/bold]" if is_best else cell)
        table.add_row(escape(name), *cells)
    return table


def hierarchical_table(rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Lay out the measures of sets with the labels above theirs."""
    table = Table(title="With the labels above, in the hierarchy", title_justify="left")
    table.add_column("", min_width=max(map(len, rows), default=0))
    for name in HIERARCHICAL_MEASURES.values():
        table.add_column(name.replace(" ", "\n"), justify="right")
    for name, row in rows.items():
        table.add_row(escape(name), *(f"{row[key]:.3f}" for key in HIERARCHICAL_MEASURES))
    return table


def labels_text(labels: Sequence[str]) -> str:
    """Write a label set for a reader; a label with a comma is quoted."""
    names = [f'"{label}"' if "," in label else label for label in labels]
    return "{" + ", ".join(names) + "}" if labels else "{} (no labels)"


def write_json(file: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all; null for numbers that are not finite."""
    text = json.dumps(_with_null(values), indent=2, ensure_ascii=False, allow_nan=False)
    with whole_file(file) as stream:
        stream.write((text + "\n").encode())


def _with_null(values: Any) -> Any:  # noqa: ANN401 (JSON values)
    """Replace NaN and infinite numbers, which JSON cannot write."""
    if isinstance(values, Mapping):
        return {name: _with_null(each) for name, each in values.items()}
    if isinstance(values, list | tuple):
        return [_with_null(each) for each in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
