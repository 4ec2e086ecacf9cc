"""A terminal that shows control characters as text, so that no label or file name can steer it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.text import Text

# What a terminal obeys instead of showing: control characters except newline and tab, separators
# of lines, marks that reverse the direction of writing, and halves of surrogate pairs.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escape_controls(text: str) -> str:
    r"""Write control characters as escapes.

    Example:
        >>> print(escape_controls("red: \x1b[31m"))
        red: \x1b[31m
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_line(text: str) -> str:
    """Write control characters as escapes, and newlines too: the text stays one line."""
    return escape_controls(text).replace("\n", "\\n")


def escape_json(line: str) -> str:
    r"""Write the control characters that JSON allows in strings as its escapes.

    Example:
        >>> print(escape_json('{"label": "\x9b31m"}'))
        {"label": "\u009b31m"}
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


class LogHandler(logging.Handler):
    """Prints what the library logs to standard error: notes, and warnings in yellow."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        from setrnn.cli.console import note, warn

        (warn if record.levelno >= logging.WARNING else note)(record.getMessage())


def show_log() -> None:
    """Print the notes and warnings that setrnn logs, once each."""
    logger = logging.getLogger("setrnn")
    logger.setLevel(logging.INFO)
    if not any(isinstance(each, LogHandler) for each in logger.handlers):
        logger.addHandler(LogHandler())


class Terminal(Console):
    """A console that escapes the control characters of all it prints, wherever they come from."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 (rich's own)
        """Return a string as rich text."""
        return super().render_str(escape_controls(text), **options)

    def render(
        self,
        renderable: Any,  # noqa: ANN401 (anything that rich prints)
        options: ConsoleOptions | None = None,
    ) -> Iterable[Segment]:
        """Lay out anything; tables and bars call this for each of their texts."""
        if isinstance(renderable, Text):
            plain = escape_controls(renderable.plain)
            if plain != renderable.plain:
                renderable = Text(plain, renderable.style, end=renderable.end)
        return super().render(renderable, options)
