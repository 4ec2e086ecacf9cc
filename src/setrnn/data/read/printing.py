"""Write values and names for error messages."""

from __future__ import annotations

import json

_MAX_SHOWN = 40


def shown(value: object) -> str:
    """Format a value as short JSON on one line."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    is_json = value is None or isinstance(value, bool | float)
    text = json.dumps(value) if is_json else str(value)
    cut = text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."
    return printable(json.dumps(cut, ensure_ascii=False)) if isinstance(value, str) else cut


def printable(text: str) -> str:
    """Escape characters that would break a line or a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
