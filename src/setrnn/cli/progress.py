"""Progress on a terminal: a bar per activity, and a line per epoch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress as rich_progress

from setrnn.cli.console import MEASURES, note, stderr, warn
from setrnn.progress import Epoch, Note, OnProgress, Progress

# Short names, so that a row fits 80 characters.
COLUMNS = MEASURES | {"hamming_loss": "hamming", "subset_accuracy": "subset"}


@contextmanager
def terminal_progress() -> Iterator[OnProgress]:
    """Yield a callback that shows progress on standard error.

    Without a terminal, only notes, epochs and the start of each activity are written. An activity
    that is part of another one is only shown as a bar, which disappears when it is done.
    """
    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(bar_width=20),
        rich_progress.TextColumn("{task.fields[detail]}", markup=False),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TextColumn("left"),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=stderr, disable=not stderr.is_terminal) as bars:
        yield _Display(bars)


class _Display:
    """Shows each event as it comes."""

    def __init__(self, bars: rich_progress.Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, rich_progress.TaskID] = {}
        self._has_header = False
        self._detail = ""
        self._wholes: set[str] = set()  # activities that have parts

    def __call__(self, event: Progress | Note) -> None:
        """Show a note or an activity's progress."""
        if isinstance(event, Note):
            (warn if event.is_warning else note)(event.text)
            return
        self._show(event)
        if event.part_of:
            self._wholes.add(event.part_of)
            return
        is_new = event.detail != self._detail and event.activity not in self._wholes
        if event.detail and is_new and not stderr.is_terminal:
            note(f"{event.activity}: {event.detail}")
        self._detail = event.detail
        if event.epoch is not None and event.epoch.scores is not None:
            if not self._has_header:
                note(_write_header(event.epoch))
                self._has_header = True
            note(_write_row(event.epoch))

    def _show(self, event: Progress) -> None:
        epoch, description = event.epoch, event.activity
        if epoch is not None:
            description = f"epoch {epoch.number}/{epoch.n_epochs}"
            speed = f"{epoch.documents_per_second:,.0f} docs/s"
            detail = f"{epoch.activity}  loss {epoch.loss:.2f}  {speed}"
        elif event.n_total is None:
            detail = event.detail or f"{event.n_done:,.0f} {event.unit}"
        else:
            detail = event.detail or f"{event.n_done:,.0f} of {event.n_total:,.0f} {event.unit}"
        if event.activity not in self._tasks:
            # A resumed run starts in the middle: what was done before is not part of the speed.
            self._tasks[event.activity] = self._bars.add_task(
                description, total=event.n_total, completed=int(event.n_done), detail=detail
            )
        self._bars.update(
            self._tasks[event.activity],
            description=description,
            completed=event.n_done,
            detail=detail,
            visible=not event.part_of or event.share < 1,
        )


def _write_header(epoch: Epoch) -> str:
    names = [name for key, name in COLUMNS.items() if key in (epoch.scores or {})]
    return "  ".join(["epoch", "loss".rjust(7), *names, "docs/s".rjust(7)])


def _write_row(epoch: Epoch) -> str:
    scores = epoch.scores or {}
    cells = [f"{epoch.number}/{epoch.n_epochs}".rjust(5), f"{epoch.loss:7.3f}"]
    for key, name in COLUMNS.items():
        if key in scores:
            digits = 4 if key == "hamming_loss" else 3
            cells.append(f"{scores[key]:.{digits}f}".rjust(len(name)))
    cells.append(f"{epoch.documents_per_second:7,.0f}")
    return "  ".join(cells) + ("  best" if epoch.is_best else "")
