"""How long-running work reports its progress: to a terminal, a notebook or a service."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

T = TypeVar("T")
STEP = 1000  # items between two reports of `watch`

log = logging.getLogger("setrnn")  # notes and warnings for the user


@dataclass(frozen=True)
class Epoch:
    """The state of one training epoch; with scores, the epoch has ended."""

    number: int  # counted from 1
    n_epochs: int
    activity: str  # the objective, or "measuring"
    loss: float  # mean over the epoch so far
    documents_per_second: float  # in training
    scores: Mapping[str, float] | None = None  # on valid; empty without a valid part
    is_best: bool = False


@dataclass(frozen=True)
class Progress:
    """How much of one activity is done.

    Example:
        >>> from setrnn.progress import Progress
        >>> Progress("training", n_done=30, n_total=120).share
        0.25
    """

    activity: str  # "word vectors", "training", "calibrating", ...
    n_done: float
    n_total: float | None = None  # None if the end is not known
    unit: str = "documents"
    detail: str = ""
    epoch: Epoch | None = None  # of a network in training
    part_of: str = ""  # the activity this one is part of, such as one run of many

    @property
    def share(self) -> float:
        """The share that is done, between 0 and 1; 0 if the end is not known."""
        return min(self.n_done / self.n_total, 1.0) if self.n_total else 0.0


OnProgress: TypeAlias = Callable[[Progress], None]


def ignore_progress(event: Progress) -> None:
    """Show nothing: the default of every function that reports its progress."""


@contextmanager
def name_reports(name: str, on_progress: OnProgress) -> Iterator[OnProgress]:
    """Put a name before each note that is logged inside.

    Yield a callback that puts the name after each activity that it reports.

    Example:
        >>> import sys
        >>> log.addHandler(handler := logging.StreamHandler(sys.stdout))
        >>> with name_reports("set-rnn", lambda event: print(event.activity)) as on_progress:
        ...     log.warning("The GPU's memory is full.")
        ...     on_progress(Progress("training", 1))
        set-rnn: The GPU's memory is full.
        training set-rnn
        >>> log.removeHandler(handler)
    """

    def add_name(record: logging.LogRecord) -> bool:
        record.msg, record.args = f"{name}: {record.getMessage()}", ()
        return True

    log.addFilter(add_name)
    try:
        yield lambda event: on_progress(replace(event, activity=f"{event.activity} {name}"))
    finally:
        log.removeFilter(add_name)


@contextmanager
def show_step(activity: str, detail: str, on_progress: OnProgress, part_of: str) -> Iterator[None]:
    """Report a step of unknown length while it lasts.

    Example:
        >>> with show_step("fitting", "thresholds", lambda event: print(event.share), "mixing"):
        ...     pass
        0.0
        1.0
    """
    on_progress(Progress(activity, 0, detail=detail, part_of=part_of))
    yield
    on_progress(Progress(activity, 1, 1, detail=detail, part_of=part_of))


def count_up(
    activity: str, on_progress: OnProgress, n_total: float | None = None, unit: str = "documents"
) -> Callable[[int], None]:
    """Return a callback that adds up what is done and reports the sum as progress.

    Example:
        >>> count = count_up("tagging", lambda event: print(event.n_done), n_total=300)
        >>> count(100), count(50)
        100
        150
        (None, None)
    """
    n_done = 0

    def add(n: int) -> None:
        nonlocal n_done
        n_done += n
        on_progress(Progress(activity, n_done, n_total, unit))

    return add


def watch(items: Iterable[T], activity: str, on_progress: OnProgress) -> Iterator[T]:
    """Yield items, and report how many there were so far."""
    add, n_new = count_up(activity, on_progress), 0
    for n_new, each in enumerate(items, 1):
        yield each
        if n_new % STEP == 0:
            add(STEP)
    add(n_new % STEP)
