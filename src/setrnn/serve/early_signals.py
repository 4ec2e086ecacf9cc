"""Signals that come before the service can take them: its libraries take seconds to import."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def ready_to_stop(say: Callable[[str], None]) -> Iterator[None]:
    """End well if it is to end already; what SIGHUP asks for is about to be done anyway."""

    def stop(number: int, frame: FrameType | None) -> None:
        say("Stopped before it was ready.")
        raise SystemExit(0)

    handlers = {signal.SIGTERM: stop, signal.SIGINT: stop}
    before = {number: signal.signal(number, each) for number, each in handlers.items()}
    if hasattr(signal, "SIGHUP"):
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, each in before.items():
            signal.signal(number, each)
