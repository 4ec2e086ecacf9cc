"""Progress on a terminal: one bar per activity, and one line per epoch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich import progress as rich_progress
from rich.table import Column
from rich.text import Text

import setrnn
from setrnn.cli.terminal import escape_line, note, stderr
from setrnn.metrics import MEASURES
from setrnn.progress import Epoch, OnProgress, Progress, count_up

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

T = TypeVar("T")
STEP = 1000  # items between two reports

# Short names, so that a row fits into 80 characters.
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
        _Time(table_column=Column(no_wrap=True)),  # on a narrow terminal, the bar gets shorter
    )
    with rich_progress.Progress(*columns, console=stderr, disable=not stderr.is_terminal) as bars:
        yield _Display(bars)


def load_model(folder: Path, device: str) -> Tagger:
    """Load a model; on a terminal, something moves meanwhile."""
    if not stderr.is_terminal:
        return setrnn.load(folder, device)
    with stderr.status(f"Loading {escape_line(str(folder))}"):
        return setrnn.load(folder, device)


def watch(items: Iterable[T], step: str, on_progress: OnProgress) -> Iterator[T]:
    """Yield items, and report how many there were so far."""
    add, n_new = count_up(step, on_progress), 0
    for n_new, each in enumerate(items, 1):
        yield each
        if n_new % STEP == 0:
            add(STEP)
    add(n_new % STEP)


class _Time(rich_progress.TimeRemainingColumn):
    """Shows the time left; the time so far of what is finished or has no known end."""

    def render(self, task: rich_progress.Task) -> Text:
        """Render the column of one task."""
        if task.total is None or task.finished:
            return rich_progress.TimeElapsedColumn().render(task)
        return Text("left ") + super().render(task)


class _Display:
    """Shows each event when it comes."""

    def __init__(self, bars: rich_progress.Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, rich_progress.TaskID] = {}
        self._with_header: set[str] = set()  # activities whose epochs have a header
        self._detail = ""
        self._wholes: set[str] = set()  # activities that have parts

    def __call__(self, event: Progress) -> None:
        """Show the progress of an activity."""
        self._show(event)
        if event.part_of:
            self._wholes.add(event.part_of)
            return
        is_new = event.detail != self._detail and event.activity not in self._wholes
        if event.detail and is_new and not stderr.is_terminal:
            note(f"{event.activity}: {event.detail}" if event.activity else event.detail)
        self._detail = event.detail
        if event.epoch is not None and event.epoch.scores is not None:
            if event.activity not in self._with_header:
                note(_write_header(event.epoch))
                self._with_header.add(event.activity)
            note(_write_row(event.epoch))

    def _show(self, event: Progress) -> None:
        """Show the bar of an activity, or move it."""
        task, description = self._tasks.get(event.activity), event.activity
        if event.epoch is not None:
            description += f", epoch {event.epoch.number}/{event.epoch.n_epochs}"
        detail = _write_detail(event, None if task is None else self._speed(task))
        if task is None:
            for each in self._bars.tasks:  # an activity without a known end has ended by now
                if each.total is None:
                    self._bars.update(each.id, total=each.completed)
            # A resumed run starts in the middle: what was done before is not part of the speed.
            task = self._bars.add_task(
                description, total=event.n_total, completed=int(event.n_done), detail=detail
            )
            self._tasks[event.activity] = task
        self._bars.update(
            task,
            description=description,
            completed=event.n_done,
            detail=detail,
            visible=not event.part_of or event.share < 1,
        )

    def _speed(self, task: rich_progress.TaskID) -> float | None:
        return next(each.speed for each in self._bars.tasks if each.id == task)


def _write_detail(event: Progress, speed: float | None) -> str:
    if event.epoch is not None:
        epoch = event.epoch
        speed_text = f"{epoch.documents_per_second:,.0f} docs/s"
        return f"{epoch.activity}  loss {epoch.loss:.2f}  {speed_text}"
    if event.detail:
        return event.detail
    if event.counts:  # the time left must fit beside it
        return event.counts + (f", {speed:,.0f} {event.unit}/s" if speed else "")
    of_total = "" if event.n_total is None else f" of {event.n_total:,.0f}"
    speed_text = f"  {speed:,.0f}/s" if speed else ""
    return f"{event.n_done:,.0f}{of_total} {event.unit}{speed_text}"


def _columns(epoch: Epoch) -> dict[str, str]:
    """Return the names of the measures that an epoch has."""
    return {key: name for key, name in COLUMNS.items() if key in (epoch.scores or {})}


def _write_header(epoch: Epoch) -> str:
    names = _columns(epoch).values()
    return "  ".join(["epoch", "loss".rjust(7), *names, "docs/s".rjust(7)])


def _write_row(epoch: Epoch) -> str:
    scores = epoch.scores or {}
    cells = [f"{epoch.number}/{epoch.n_epochs}".rjust(5), f"{epoch.loss:7.3f}"]
    for key, name in _columns(epoch).items():
        digits = 4 if key == "hamming_loss" else 3
        cells.append(f"{scores[key]:.{digits}f}".rjust(len(name)))
    cells.append(f"{epoch.documents_per_second:7,.0f}")
    return "  ".join(cells) + ("  best" if epoch.is_best else "")
