"""What stops a training run, said with the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from setrnn.config import Config, TrainingSettings
from setrnn.data.prepared import Prepared
from setrnn.data.subwords import check_same_tokenizer
from setrnn.errors import DataError, TrainingError
from setrnn.training.checkpoints import Position


def check_data(prepared: Prepared, config: Config) -> None:
    """Refuse data that nothing can be learned from, and sets longer than the step limit.

    Nor can an encoder read what another tokenizer wrote.
    """
    check_same_tokenizer(prepared.folder, config, prepared.encoder)
    train = prepared.split("train")
    if not len(train) or not len(prepared.labels):
        what = "label" if len(train) else "document"
        raise DataError(f"The train part of {prepared.name} has no {what}: nothing to learn.")
    sizes = train.labels.lengths
    longest, most = int(sizes.argmax()), config.model.max_labels
    if sizes[longest] > most:
        name = train.ids(longest, longest + 1)[0]
        raise DataError(
            f"Document '{name}' of train has {sizes[longest]} labels, more than model.max_labels "
            f"({most}). Raise it: --set model.max_labels={sizes[longest]}"
        )


def check_set_sizes(prepared: Prepared, most: int, method: str) -> None:
    """Refuse sets larger than a method can sum up."""
    largest = int(prepared.split("train").labels.lengths.max(initial=0))
    if largest > most:
        raise DataError(
            f"A document of train has {largest} labels, and '{method}' takes at most {most}. Train "
            "set-rnn instead."
        )


def not_finite(position: Position, settings: TrainingSettings) -> TrainingError:
    """Return what to say when the loss or a weight is no number."""
    way_out = f"Lower training.learning_rate (now {settings.learning_rate:g})"
    if settings.clip_norm:
        way_out += f" or training.clip_norm (now {settings.clip_norm:g})"
    else:
        way_out += ", or set training.clip_norm"
    if settings.precision != "float32":
        way_out += ", or set training.precision=float32"
    return TrainingError(
        f"The loss is not finite in epoch {position.epoch + 1}, batch {position.batch} or shortly "
        f"before. {way_out}. What was saved before is kept."
    )


@contextmanager
def clear_memory_errors(activity: str, way_out: str) -> Iterator[None]:
    """Say it in one line when something does not fit the GPU."""
    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError) as error:
        is_known = isinstance(error, torch.OutOfMemoryError)
        if not is_known and "ALLOC_FAILED" not in str(error):  # how cuBLAS and cuDNN put it
            raise
        raise TrainingError(f"{activity} does not fit the GPU's memory. {way_out}") from error


def smaller_batches(settings: TrainingSettings) -> str:
    """Return the way out when a batch does not fit."""
    return (
        f"Lower training.batch_size (now {settings.batch_size}) and go on with --resume, or train "
        "anew with a lower text.max_words or search.beam_width."
    )
