"""What commands print, with control characters as text: no label or file name steers a terminal.

Tables go to standard output, notes and warnings to standard error.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.text import Text

from setrnn.data.disk import whole_file
from setrnn.progress import log

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


def escape_json(line: str) -> str:
    r"""Write the control characters that JSON allows in strings as its escapes.

    Example:
        >>> print(escape_json('{"label": "\x9b31m"}'))
        {"label": "\u009b31m"}
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


class Terminal(Console):
    """A console that escapes the control characters of all it prints, wherever they come from."""

    shows_notes = True  # and bars; warnings and errors are always shown

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


stdout = Terminal()
stderr = Terminal(stderr=True)


def show(text: str) -> None:
    """Print a sentence or several to standard output; they are wrapped on a terminal only."""
    stdout.print(text, markup=False, highlight=False, soft_wrap=not stdout.is_terminal)


def note(message: str, style: str | None = None) -> None:
    """Print a note to standard error, in one line; with a style, it is more than a note."""
    if style is None and not stderr.shows_notes:
        return
    line = escape_controls(message).replace("\n", "\\n")
    stderr.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning to standard error."""
    note(f"warning: {message}", "yellow")


class LogHandler(logging.Handler):
    """Prints what the library logs to standard error: notes, and warnings in yellow."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        (warn if record.levelno >= logging.WARNING else note)(record.getMessage())


def show_log() -> None:
    """Print the notes and warnings that setrnn logs, once each."""
    log.setLevel(logging.INFO)
    if not any(isinstance(each, LogHandler) for each in log.handlers):
        log.addHandler(LogHandler())


@contextmanager
def quiet(is_quiet: bool) -> Iterator[None]:
    """Print nothing meanwhile, if asked; errors are printed afterwards."""
    for each in (stdout, stderr):
        each.quiet = is_quiet
    try:
        yield
    finally:
        for each in (stdout, stderr):
            each.quiet = False


def write_json(file: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all; null for numbers that are not finite."""
    finite = json.loads(json.dumps(values), parse_constant=lambda name: None)
    with whole_file(file) as stream:
        stream.write((json.dumps(finite, indent=2, ensure_ascii=False) + "\n").encode())
