"""Ctrl-C at a good moment: the batch in hand is finished first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def polite_interrupts() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether to stop; a second Ctrl-C stops at once.

    SIGTERM counts too. A signal that the process ignores stays ignored. Signals reach the main
    thread only: elsewhere nothing changes.
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

    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    before = {
        number: handler
        for number, handler in handlers.items()
        if handler not in (signal.SIG_IGN, None)
    }
    for number in before:
        signal.signal(number, ask)
    try:
        yield lambda: is_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
