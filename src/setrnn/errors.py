"""The exceptions of setrnn: a user can act on each from its one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST_NAMES = 20  # that a message lists


class SetRNNError(Exception):
    """Something setrnn refuses; the message says where, what, and the way out."""


class ConfigError(SetRNNError):
    """A setting that does not exist or does not fit."""


class DataError(SetRNNError):
    """Data that cannot be read."""


class BadRowError(DataError):
    """One row that cannot be read; the rows around it may be fine."""

    def __init__(self, place: str, problem: str) -> None:
        """Say where the row is (`train.jsonl line 41`) and what is wrong with it."""
        super().__init__(place, problem)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


class ModelError(SetRNNError):
    """A model folder that cannot be used."""


class TrainingError(SetRNNError):
    """Training that cannot go on."""


class StoppedError(SetRNNError):
    """Work that was asked to stop, and did, after saving where it stands."""


class MissingExtraError(SetRNNError):
    """An optional library that is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        """Name the library, the extra that brings it, and what it is needed for."""
        super().__init__(library, extra, purpose)

    def __str__(self) -> str:
        library, extra, purpose = self.args
        return f"{purpose} needs {library}. Install it with: pip install 'setrnn[{extra}]'"


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Suggest the known name closest to a wrong one, or list them; of many, the first."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"Did you mean '{close[0]}'?"
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return f"Known: {', '.join(known[:MOST_NAMES])}{more}."
