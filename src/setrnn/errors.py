"""The exceptions of setrnn. Each message is one line that says what to do."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

MOST_NAMES = 20  # listed in a message
MOST_SHOWN = 40  # characters of a value in a message
# How NumPy and torch say how much memory they asked for, on the CPU and on a GPU.
_ASKED_FOR = re.compile(r"allocate ([\d.]+ (?:bytes|[KMGTPE]iB))")
_FULL_GPU = ("out of memory", "ALLOC_FAILED")  # from CUDA; from cuBLAS and cuDNN
_FULL_MEMORY = ("can't allocate memory", "bad_alloc", "Cannot allocate memory", *_FULL_GPU)


class SetRNNError(Exception):
    """The base class of the errors of setrnn: where, what, and the way out, in one line."""


class ConfigError(SetRNNError, ValueError):
    """A setting or an argument that does not exist or is out of range.

    Example:
        >>> import setrnn
        >>> try:
        ...     setrnn.Limits(max_labels=-1)
        ... except ValueError as error:
        ...     print(error)
        max_labels must be 0 or more, got -1.
    """


class DataError(SetRNNError, ValueError):
    """Data or texts that cannot be used."""


class BadRowError(DataError):
    """One row that cannot be read; the other rows may be fine."""

    def __init__(self, place: str, problem: str) -> None:
        """Store where the row is (`train.jsonl line 41`) and what is wrong with it."""
        super().__init__(place, problem)

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


class BusyError(SetRNNError):
    """A file or folder that another process is writing."""


class ModelError(SetRNNError):
    """A model folder that cannot be used."""


class TrainingError(SetRNNError):
    """Training that cannot continue."""


class StoppedError(SetRNNError):
    """Work that was stopped on request, after saving its state."""


class BrokenPromiseError(SetRNNError, AssertionError):
    """A part that does not do what its protocol promises: see `setrnn.checks`."""


class MissingExtraError(SetRNNError):
    """An optional library that is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        """Store the library, the extra that installs it, and what needs it."""
        super().__init__(library, extra, purpose)

    def __str__(self) -> str:
        library, extra, purpose = self.args
        return f"{purpose} needs {library}. Install it with: pip install 'setrnn[{extra}]'"


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is nearest to a wrong one, or list the known names.

    Example:
        >>> nearest_name("set-rn", ["br", "pcc", "set-rnn"])
        "Did you mean 'set-rnn'?"
        >>> nearest_name("x", ["br", "pcc"])
        'Known: br, pcc.'
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"Did you mean '{close[0]}'?"
    return f"Known: {list_some(known, MOST_NAMES)}."


def list_some(names: Sequence[str], most: int) -> str:
    """List the first names, and count the others.

    Example:
        >>> list_some(["br", "pcc", "set-rnn"], 2)
        'br, pcc and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def count_of(n: int, noun: str) -> str:
    """Write a number of things: 1 run, 2 runs."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def is_full_gpu(error: BaseException | None) -> bool:
    """Return whether an error of torch says that the GPU has too little memory."""
    return isinstance(error, RuntimeError) and any(each in str(error) for each in _FULL_GPU)


@contextmanager
def explain_full_gpu(activity: str, way_out: str) -> Iterator[None]:
    """Raise one line with a way out when an activity does not fit into the GPU's memory."""
    try:
        yield
    except RuntimeError as error:
        if not is_full_gpu(error):
            raise
        raise TrainingError(f"{activity} does not fit into the GPU's memory. {way_out}") from error


def shown(value: object) -> str:
    """Format a value as short JSON on one line, for a message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    is_json = value is None or isinstance(value, bool | float)
    text = json.dumps(value) if is_json else str(value)
    cut = text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."
    return printable(json.dumps(cut, ensure_ascii=False)) if isinstance(value, str) else cut


def printable(text: str) -> str:
    """Escape characters that would break a line or a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def find_memory_problem(error: BaseException) -> str | None:
    """Describe in one line an error of too little memory; return None for any other error.

    Example:
        >>> find_memory_problem(MemoryError("Unable to allocate 8.5 TiB for an array"))[:45]
        'There is not enough memory for 8.5 TiB more. '
        >>> find_memory_problem(ValueError("no"))
    """
    text = str(error)
    is_torch = isinstance(error, RuntimeError) and any(each in text for each in _FULL_MEMORY)
    if not isinstance(error, MemoryError) and not is_torch:
        return None
    size = _ASKED_FOR.search(text)
    more = f" for {size[1]} more" if size else ""
    return (
        f"There is not enough memory{more}. Lower --beam-width or --top in prediction; in training "
        "training.batch_size, search.beam_width, text.windows, text.max_words, "
        "text.max_vocabulary, vectors.dimensions, model.encoder_units or model.decoder_units."
    )
