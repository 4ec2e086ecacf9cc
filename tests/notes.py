"""What the library logs for its user, as a list."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from setrnn.progress import log


class Notes(logging.Handler):
    """Collects notes and warnings."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def texts(self) -> list[str]:
        return [each.getMessage() for each in self.records]

    @property
    def warnings(self) -> list[str]:
        return [each.getMessage() for each in self.records if each.levelno >= logging.WARNING]


@contextmanager
def collected_notes() -> Iterator[Notes]:
    handler, level = Notes(), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield handler
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
