"""What stops a training run: a full GPU, Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from setrnn.errors import TrainingError, is_full_gpu

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def explain_full_gpu(activity: str, way_out: str) -> Iterator[None]:
    """Raise one line with a way out when an activity does not fit into the GPU's memory."""
    try:
        yield
    except RuntimeError as error:
        if not is_full_gpu(error):
            raise
        raise TrainingError(f"{activity} does not fit into the GPU's memory. {way_out}") from error


@contextmanager
def polite_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C or SIGTERM came; a second one stops at once.

    An ignored signal stays ignored. Only the main thread gets signals: elsewhere nothing changes.
    """
    is_asked = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal is_asked
        if is_asked:
            raise KeyboardInterrupt
        is_asked = True

    before = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: each for number, each in before.items() if each not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, ask)
    try:
        yield lambda: is_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
