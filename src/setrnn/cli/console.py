"""What commands print: tables to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from setrnn.data.folders import whole_file

stdout = Console()
stderr = Console(stderr=True)


def note(message: str) -> None:
    """Say something to the person, beside the output."""
    stderr.print(message, markup=False, highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """Say something the person should act on."""
    stderr.print(
        f"warning: {message}", style="yellow", markup=False, highlight=False, soft_wrap=True
    )


@contextmanager
def documents_progress() -> Iterator[Callable[[str, int], None]]:
    """Yield a function that counts the documents of each step, on a line each."""
    tasks: dict[str, TaskID] = {}
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} documents"),
        TextColumn("{task.fields[speed]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=stderr) as progress:

        def advance(step: str, n_documents: int) -> None:
            if step not in tasks:
                tasks[step] = progress.add_task(step, total=None, speed="")
            task = progress.tasks[tasks[step]]
            speed = f"{task.speed:,.0f}/s" if task.speed else ""
            progress.update(tasks[step], advance=n_documents, speed=speed)

        yield advance


@contextmanager
def shared_progress() -> Iterator[Callable[[str, float], None]]:
    """Yield a function that shows what is being done, and which share of it is done."""
    columns = (BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=stderr) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda what, share: progress.update(task, description=what, completed=share)


@contextmanager
def counted_progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a bar with a known end."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr) as progress:
        task = progress.add_task(what, total=total)
        yield lambda n: progress.advance(task, n)


def scores_table(title: str, rows: Mapping[str, Mapping[str, Any]]) -> Table:
    """Lay out measures, a system a row; the best of each column is bold."""
    from setrnn.metrics import LOWER_IS_BETTER, MEASURES

    table = Table(title=escape(title), title_justify="left")
    table.add_column("", min_width=max(map(len, rows), default=0))  # names are never cut
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


def labels_text(labels: Sequence[str]) -> str:
    """Write a label set for people."""
    return "{" + ", ".join(labels) + "}" if labels else "{} (no labels)"


def write_json(file: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    with whole_file(file) as stream:
        stream.write((json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())
