"""What stops a training run: bad data, numbers that are not finite, a full GPU, Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import torch

from setrnn.config import Config, TrainingSettings
from setrnn.data.prepared import Prepared
from setrnn.data.text.subwords import check_same_tokenizer
from setrnn.errors import DataError, TrainingError

if TYPE_CHECKING:
    from setrnn.methods import Method
    from setrnn.training.run_folder import Position

# Objectives that compare the labels of a model with a whole set.
NO_SET_PROBABILITY = ("optimal-completion", "set-reward")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def check_data(prepared: Prepared, config: Config, has_own_tokenizer: bool = False) -> None:
    """Refuse data without documents or labels, too large sets, and tokens of another tokenizer.

    A network that is trained further has its own tokenizer: that of its encoder may be gone.
    """
    if not has_own_tokenizer:
        check_same_tokenizer(prepared.folder, config, prepared.encoder)
    train = prepared.split("train")
    if not len(train) or not len(prepared.labels):
        what = "labels" if len(train) else "documents"
        raise DataError(f"The train part of {prepared.name} has no {what}: nothing to learn.")
    sizes = train.labels.lengths
    longest, most = int(sizes.argmax()), config.model.max_labels
    if sizes[longest] > most:
        name = train.ids(longest, longest + 1)[0]
        raise DataError(
            f"Document '{name}' of train has {sizes[longest]} labels, more than model.max_labels "
            f"({most}). Raise it: --set model.max_labels={sizes[longest]}"
        )


def check_set_sizes(prepared: Prepared, most: int | None, method: str) -> None:
    """Refuse label sets that are larger than a method can be trained on; None means no limit."""
    largest = int(prepared.split("train").labels.lengths.max(initial=0))
    if most is not None and largest > most:
        raise DataError(
            f"A document of train has {largest} labels, but '{method}' can be trained on at most "
            f"{most} per document. Train set-rnn instead."
        )


def check_incomplete(prepared: Prepared, method: Method) -> None:
    """Refuse unknown labels in train for a method whose objective is not the probability of sets.

    A method from outside may have any objective: that of each set is taken as its log p.
    """
    train = prepared.split("train")
    if train.unknown is not None and method.objective in NO_SET_PROBABILITY:
        raise DataError(
            f"{int((~train.is_complete).sum()):,} documents of train have labels that are not "
            f"known, and '{method.name}' needs whole label sets. Train set-rnn instead, or leave "
            "these documents out."
        )


def not_finite(position: Position, settings: TrainingSettings) -> TrainingError:
    """Return the error for a loss or a weight that is not a finite number."""
    way_out = f"Lower training.learning_rate (now {settings.learning_rate:g})"
    if settings.clip_norm:
        way_out += f" or training.clip_norm (now {settings.clip_norm:g})"
    else:
        way_out += ", or set training.clip_norm"
    if settings.precision != "float32":
        way_out += ", or set training.precision=float32"
    return TrainingError(
        f"The loss is not finite in epoch {position.epoch + 1}, batch {position.batch} or shortly "
        f"before. {way_out}. Earlier checkpoints are kept."
    )


@contextmanager
def explain_full_gpu(activity: str, way_out: str) -> Iterator[None]:
    """Raise one line with a way out when an activity does not fit into the GPU's memory."""
    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError) as error:
        is_known = isinstance(error, torch.OutOfMemoryError)
        if not is_known and "ALLOC_FAILED" not in str(error):  # from cuBLAS and cuDNN
            raise
        raise TrainingError(f"{activity} does not fit into the GPU's memory. {way_out}") from error


def suggest_smaller_batches(settings: TrainingSettings) -> str:
    """Return the way out when a batch does not fit."""
    return (
        f"Lower training.batch_size (now {settings.batch_size}) and resume with --resume, or train "
        "again with a lower text.windows, text.max_words or search.beam_width."
    )


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
