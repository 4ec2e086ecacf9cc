"""What `train` shows of a recurrent system's training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich import progress as rich_progress

from setrnn.cli.console import note, stderr

if TYPE_CHECKING:
    from setrnn.training.progress import Progress

# Short names, so that a row fits into 80 characters.
SHORT_NAMES = {"hamming_loss": "hamming", "subset_accuracy": "subset"}


@contextmanager
def training_display() -> Iterator[TrainingDisplay]:
    """Yield what shows the making of word vectors, then training."""
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.fields[detail]}"),
        rich_progress.TextColumn("left"),
        rich_progress.TimeRemainingColumn(),
    )
    bars = rich_progress.Progress(*columns, console=stderr)
    with bars if stderr.is_terminal else nullcontext():
        yield TrainingDisplay(bars)


class TrainingDisplay:
    """A bar on a terminal, and a line for each epoch."""

    def __init__(self, bars: rich_progress.Progress) -> None:
        self._bars = bars
        self._task: rich_progress.TaskID | None = None
        self._said = ""
        self._has_header = False

    def vectors(self, message: str, share: float) -> None:
        """Show how far the making of word vectors is."""
        if stderr.is_terminal:
            self._show("word vectors", 1.0, share, message)
        elif message != self._said:
            note(f"word vectors: {message}")
        self._said = message

    def training(self, progress: Progress) -> None:
        """Show how far training is."""
        if self._said:  # the bar of the word vectors gives way
            self._hide()
            self._said = ""
        what = f"epoch {progress.epoch}/{progress.n_epochs}"
        speed = f"{progress.documents_per_second:,.0f} docs/s"
        detail = f"{progress.activity}  loss {progress.loss:.2f}  {speed}"
        self._show(what, progress.n_total, progress.n_documents, detail)
        if progress.scores is not None:
            if not self._has_header:
                note(_header(progress))
                self._has_header = True
            note(_row(progress))

    def _show(self, what: str, total: float, completed: float, detail: str) -> None:
        if self._task is None:
            done_before = int(completed)  # it is no part of the speed
            self._task = self._bars.add_task(
                what, total=total, completed=done_before, detail=detail
            )
        self._bars.update(self._task, description=what, completed=completed, detail=detail)

    def _hide(self) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None


def _columns(progress: Progress) -> dict[str, str]:
    """Return the names of the measures that an epoch has, in the order of `MEASURES`."""
    from setrnn.metrics import MEASURES

    names = MEASURES | SHORT_NAMES
    return {key: name for key, name in names.items() if key in (progress.scores or {})}


def _header(progress: Progress) -> str:
    names = _columns(progress).values()
    return "  ".join(["epoch", "loss".rjust(7), *names, "docs/s".rjust(7)])


def _row(progress: Progress) -> str:
    cells = [f"{progress.epoch}/{progress.n_epochs}".rjust(5), f"{progress.loss:7.3f}"]
    for key, name in _columns(progress).items():
        digits = 4 if key == "hamming_loss" else 3
        cells.append(f"{(progress.scores or {})[key]:.{digits}f}".rjust(len(name)))
    cells.append(f"{progress.documents_per_second:7,.0f}")
    return "  ".join(cells) + ("  best" if progress.is_best else "")
