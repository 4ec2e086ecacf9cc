"""Progress on a terminal: one bar per activity, and one line per epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich import progress as rich_progress
from rich.table import Column
from rich.text import Text

from setrnn.cli.terminal import note, stderr
from setrnn.metrics import MEASURES, write_measure
from setrnn.progress import Epoch, OnProgress, Progress

# Short names, so that a row fits into 80 characters.
COLUMNS = MEASURES | {"hamming_loss": "hamming", "subset_accuracy": "subset"}
MIN_WIDTH = 6  # of a column


@contextmanager
def terminal_progress() -> Iterator[OnProgress]:
    """Yield a callback that shows progress on standard error.

    Without a terminal, only epochs are written. An activity that is part of another one has a bar
    that disappears when it is done.
    """
    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(bar_width=20),
        _Detail(table_column=Column(no_wrap=True)),
        # On a narrow terminal, the bar gets shorter.
        rich_progress.TimeRemainingColumn(
            elapsed_when_finished=True, table_column=Column(no_wrap=True)
        ),
    )
    is_disabled = not (stderr.is_terminal and stderr.shows_notes)
    with rich_progress.Progress(*columns, console=stderr, disable=is_disabled) as bars:
        yield _Display(bars)


class _Detail(rich_progress.ProgressColumn):
    """Shows what is done, and how fast."""

    def render(self, task: rich_progress.Task) -> Text:
        """Render the column of one task."""
        event: Progress = task.fields["event"]
        if (epoch := event.epoch) is not None:
            speed = f"{epoch.documents_per_second:,.0f} docs/s"
            return Text(f"{epoch.activity}  loss {epoch.loss:.2f}  {speed}")
        if event.detail:
            return Text(event.detail)
        of_total = "" if event.n_total is None else f" of {event.n_total:,.0f}"
        speed = f"  {task.speed:,.0f}/s" if task.speed else ""
        return Text(f"{event.n_done:,.0f}{of_total} {event.unit}{speed}")


class _Display:
    """Shows each event when it comes."""

    def __init__(self, bars: rich_progress.Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, rich_progress.TaskID] = {}
        self._with_header: set[str] = set()  # activities whose epochs have a header

    def __call__(self, event: Progress) -> None:
        """Show the progress of an activity."""
        self._show(event)
        if event.part_of or event.epoch is None or event.epoch.scores is None:
            return
        header, row = _write_epoch(event.epoch, event.epoch.scores)
        if event.activity not in self._with_header:
            note(header)
            self._with_header.add(event.activity)
        note(row)

    def _show(self, event: Progress) -> None:
        """Show the bar of an activity, or move it."""
        task, description = self._tasks.get(event.activity), event.activity
        if event.epoch is not None:
            description += f", epoch {event.epoch.number}/{event.epoch.n_epochs}"
        if task is None:
            for each in self._bars.tasks:  # an activity without a known end has ended by now
                if each.total is None:
                    self._bars.update(each.id, total=each.completed)
            # A resumed run starts in the middle: what was done before is not part of the speed.
            task = self._bars.add_task(
                description, total=event.n_total, completed=int(event.n_done), event=event
            )
            self._tasks[event.activity] = task
        self._bars.update(
            task,
            description=description,
            completed=event.n_done,
            event=event,
            visible=not event.part_of or event.share < 1,
        )


def _write_epoch(epoch: Epoch, scores: Mapping[str, float]) -> tuple[str, str]:
    """Return the names of the columns, and the row of an epoch that has ended."""
    cells = {"epoch": f"{epoch.number}/{epoch.n_epochs}", "loss": f"{epoch.loss:.3f}"}
    cells |= {
        name: write_measure(scores[key], key) for key, name in COLUMNS.items() if key in scores
    }
    cells["docs/s"] = f"{epoch.documents_per_second:,.0f}"
    widths = {name: max(len(name), MIN_WIDTH) for name in cells}
    header = "  ".join(name.rjust(width) for name, width in widths.items())
    row = "  ".join(cells[name].rjust(width) for name, width in widths.items())
    return header, row + ("  best" if epoch.is_best else "")
