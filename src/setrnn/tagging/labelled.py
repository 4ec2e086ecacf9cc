"""Documents whose labels are known, in batches a tagger can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from setrnn.data.example import Example
from setrnn.data.prepared import Prepared, batched
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.tagging.tagger import BATCH, Tagger

Batch = tuple[Ragged, list[tuple[str, ...]]]  # token ids, and the labels of each document


def example_batches(tagger: Tagger, examples: Iterable[Example]) -> Iterator[Batch]:
    """Read a stream of documents."""
    for batch in batched(examples, BATCH):
        tokens = tagger.encoder.encode(
            [example.text for example in batch], [example.features for example in batch]
        )
        yield tokens, [example.labels for example in batch]


def prepared_batches(tagger: Tagger, prepared: Prepared, split: str) -> Iterator[Batch]:
    """Read a split of a prepared folder; refuse one of another vocabulary than the model's."""
    if prepared.encoder.tokenizer.to_str() != tagger.encoder.tokenizer.to_str():
        raise DataError(
            f"{prepared.folder} was prepared with another vocabulary than the model's. "
            "Give the data itself."
        )
    part = prepared.split(split)
    names = [*prepared.labels.names, *prepared.unseen_labels]
    for start in range(0, len(part), BATCH):
        stop = min(start + BATCH, len(part))
        truth = [tuple(names[label] for label in row) for row in part.labels.rows(start, stop)]
        yield part.tokens.rows(start, stop), truth
