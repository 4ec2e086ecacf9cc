"""The log that TensorBoard reads.

Written in the loop's own thread: tensorboardX's SummaryWriter writes in another one, and waits
for it for ever once the disk is full.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class EventLog:
    """Values over the course of a run; nothing is logged where tensorboardX is missing."""

    def __init__(self, folder: Path, first_step: int) -> None:
        """Begin a log; TensorBoard then drops what was logged before at this step or later."""
        self._writer: Any = None
        try:
            from tensorboardX.event_file_writer import EventsWriter
            from tensorboardX.proto.event_pb2 import Event, SessionLog
            from tensorboardX.summary import scalar
        except (ImportError, TypeError):  # protobuf raises TypeError where versions do not fit
            return
        self._event, self._scalar = Event, scalar
        self._writer = EventsWriter(str(folder / "events"), f".{first_step}")
        start = SessionLog(status=SessionLog.START)
        self._writer.write_event(Event(wall_time=time.time(), step=first_step, session_log=start))

    def add(self, values: Mapping[str, float], step: int) -> None:
        """Log values at a step."""
        if self._writer is None:
            return
        for name, value in values.items():
            summary = self._scalar(name, value)
            event = self._event(wall_time=time.time(), step=step, summary=summary)
            self._writer.write_event(event)

    def flush(self) -> None:
        """Put on disk what was logged."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """End the log."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
