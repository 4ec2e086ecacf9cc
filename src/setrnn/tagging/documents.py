"""Documents with labels, to measure, calibrate or mix on; were they trained on?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np

from setrnn.data.cache import Source, read_source
from setrnn.data.example import Example, name_example
from setrnn.data.formats import BadRows, choose_split
from setrnn.data.joint_encoder import split_rows
from setrnn.data.prepared import Prepared, batched
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.progress import Note, OnProgress
from setrnn.tagging.tagger import BATCH, Tagger

# Texts that occur twice, in train and in another part, are no reason to warn.
MOST_SEEN = 0.1  # of the documents
BATCHES_LOOKED_AT = 4
FITTED_ON_SEEN = (
    "The model was trained on about {share} of these documents, and is more confident about them "
    "than about others: use documents that it has not seen, such as a valid part."
)
MEASURED_ON_SEEN = (
    "The model was trained on about {share} of these documents: it will do worse on new ones. "
    "Measure it on documents that it has not seen."
)

Batch: TypeAlias = tuple[Ragged, list[tuple[str, ...]]]  # token ids, and each document's labels


@dataclass(frozen=True)
class LabelledDocuments:
    """One part of a dataset with labels, to measure or to calibrate on."""

    split: str | None  # the name of the part; None for examples
    batches: Callable[[Tagger], Iterator[Batch]]
    bad_rows: BadRows = field(default_factory=BadRows)
    n_documents: int | None = None  # None if not known before reading

    def note_skipped(self, on_progress: OnProgress) -> None:
        """Report how many rows were skipped, and the first few of them."""
        if self.bad_rows.n_skipped:
            text = f"{self.bad_rows.n_skipped:,} rows could not be read and were skipped."
            on_progress(Note(text, is_warning=True))
        for message in self.bad_rows.first:
            on_progress(Note(f"  {message}"))
        for text in self.bad_rows.notes:
            on_progress(Note(text))


# A file, a folder, a prepared folder, "newsroom" ...; or documents that are read already.
Documents: TypeAlias = (
    str | Path | Sequence[str | Path] | Source | Prepared | LabelledDocuments | Iterable[Example]
)


def open_documents(
    data: Documents, split: str | None = None, default: str = "test"
) -> LabelledDocuments:
    """Find a part of a dataset: `split`, or if None, the only part or `default`.

    Example:
        >>> import setrnn
        >>> setrnn.open_documents("newsroom").split
        'test'
    """
    if isinstance(data, LabelledDocuments):
        return data
    source = None if isinstance(data, Prepared) else read_source(data)
    if source is not None and source.prepared_folder is not None:
        data = Prepared(source.prepared_folder)
    if isinstance(data, Prepared):
        name = split or choose_split(data.splits, default)
        read = partial(prepared_batches, prepared=data, split=name)
        n_documents = data.description["n_documents"].get(name)
        return LabelledDocuments(name, read, n_documents=n_documents)
    if source is None:
        examples = cast(Iterable[Example], data)
        return LabelledDocuments(split, partial(example_batches, examples=examples))
    dataset, bad_rows = source.open(), BadRows(source.on_bad_row)
    name = split or choose_split(list(dataset.splits), default)
    part = dataset.require(name)

    def batches(tagger: Tagger) -> Iterator[Batch]:
        return example_batches(tagger, part.read(bad_rows))

    return LabelledDocuments(name, batches, bad_rows)


def open_unseen(
    tagger: Tagger, data: Documents, split: str | None, on_progress: OnProgress
) -> LabelledDocuments:
    """Find documents to calibrate or mix on: valid, or the only part, if `split` is None.

    If the data has no valid part and the model was trained on it, the valid part is the one that
    was cut from train then. Other documents that the model was trained on give a warning.
    """
    cut = _cut_valid(data) if split in (None, "valid") else None
    if cut is not None and is_seen(tagger, open_documents(replace(cut, cut_valid=False), "train")):
        valid = open_documents(cut, "valid")
        if not is_seen(tagger, valid):
            text = (
                f"The model was trained on {cut}: only the valid part that was cut off then "
                "is used."
            )
            on_progress(Note(text))
            return valid
    return warn_if_seen(open_documents(data, split, "valid"), FITTED_ON_SEEN, on_progress)


def _cut_valid(data: Documents) -> Source | None:
    """Return the data with a valid part cut from train; None if it has one, or is not in files."""
    source = read_source(data)
    if source is None or source.prepared_folder is not None:
        return None
    splits = source.open().splits
    return replace(source, cut_valid=True) if "train" in splits and "valid" not in splits else None


def is_seen(tagger: Tagger, documents: LabelledDocuments) -> bool:
    """Return whether a model was trained on some of the first documents."""
    counts = _SeenCounts(tagger)
    for tokens, _ in islice(documents.batches(tagger), BATCHES_LOOKED_AT):
        counts.add(tokens)
    return counts.share > MOST_SEEN


def warn_if_seen(
    documents: LabelledDocuments, warning: str, on_progress: OnProgress
) -> LabelledDocuments:
    """Return the same documents; when all are read, warn if the model was trained on some."""

    def batches(tagger: Tagger) -> Iterator[Batch]:
        counts = _SeenCounts(tagger)
        for tokens, labels in documents.batches(tagger):
            counts.add(tokens)
            yield tokens, labels
        if counts.share > MOST_SEEN:
            on_progress(Note(warning.format(share=f"{counts.share:.0%}"), is_warning=True))

    return replace(documents, batches=batches)


class _SeenCounts:
    """How many documents a model, or a member of a mixture, was trained on."""

    def __init__(self, tagger: Tagger) -> None:
        self.sketches = tagger.trained_documents
        self.counts = np.zeros((len(self.sketches), 2), dtype=np.int64)  # seen, examined

    def add(self, tokens: Ragged) -> None:
        """Count more documents."""
        if self.sketches:
            parts = split_rows(tokens, len(self.sketches))
            pairs = zip(self.sketches, parts, strict=True)
            self.counts += [sketch.count_seen(part) for sketch, part in pairs]

    @property
    def share(self) -> float:
        """The share of documents that were trained on."""
        seen, examined = self.counts.T
        return float((seen / np.maximum(examined, 1)).max(initial=0.0))


def example_batches(tagger: Tagger, examples: Iterable[Example]) -> Iterator[Batch]:
    """Yield a stream of documents in batches of token ids."""
    for batch in batched(examples, BATCH):
        if not all(isinstance(example, Example) for example in batch):
            raise DataError("Documents with labels are given as setrnn.Example(id, text, labels).")
        tokens = tagger.encoder.encode(
            [example.text for example in batch],
            [example.features for example in batch],
            partial(name_example, batch),
        )
        yield tokens, [example.labels for example in batch]


def prepared_batches(tagger: Tagger, prepared: Prepared, split: str) -> Iterator[Batch]:
    """Yield a split of prepared data in batches; its vocabulary must be the model's."""
    own = tagger.encoder
    is_same = prepared.encoder.tokenizer.to_str() == own.tokenizer.to_str()
    if not is_same or len(own.parts) > 1:  # the members of a mixture have several
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
