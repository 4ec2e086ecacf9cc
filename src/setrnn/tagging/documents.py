"""Labelled documents to measure, calibrate or mix on, and which of them a model was trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import numpy as np

from setrnn.data.example import NOTHING, Example, Hashes, hash_texts, name_example
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import encode_unknown, mark_unknown
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.read import BadRows, choose_split
from setrnn.data.source import Source, read_source
from setrnn.data.streaming import batched
from setrnn.errors import DataError
from setrnn.progress import OnProgress, count_up, log
from setrnn.systems.candidates import Bools, Ints
from setrnn.tagging.tagger import Tagger

# Up to this share of the words, texts that were trained on are taken for texts that occur twice.
MAX_SEEN = 0.1
BATCHES_LOOKED_AT = 4


class Batch(NamedTuple):
    """Some documents with labels."""

    tokens: Ragged
    labels: list[tuple[str, ...]]  # of each document
    text_hashes: Hashes
    # (n, L) marks the labels of the model that are not known; None if all are
    unknown: Bools | None = None

    @property
    def is_complete(self) -> Bools:
        """Whether all labels of each document are known: (n,)."""
        if self.unknown is None:
            return np.ones(len(self.labels), dtype=bool)
        return np.asarray(~self.unknown.any(axis=1))

    def take(self, rows: Ints) -> Batch:
        """Return some of the documents."""
        return Batch(
            self.tokens.take(rows),
            [self.labels[row] for row in rows],
            self.text_hashes[rows],
            None if self.unknown is None else self.unknown[rows],
        )


@dataclass(frozen=True)
class LabelledDocuments:
    """One part of a dataset with labels, to measure or to calibrate on."""

    split: str | None  # the name of the part; None for examples
    batches: Callable[[Tagger], Iterator[Batch]]
    bad_rows: BadRows = field(default_factory=BadRows)
    n_documents: int | None = None  # None if not known before reading
    share_trained_on: float = 0.0  # of documents that a model is fitted on, and has seen
    hierarchy: Hierarchy | None = None  # that the data was given or prepared with


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
        return LabelledDocuments(name, read, n_documents=n_documents, hierarchy=data.hierarchy)
    if source is None:
        examples = cast(Iterable[Example], data)
        return LabelledDocuments(split, partial(example_batches, examples=examples))
    dataset, bad_rows = source.open(), BadRows(source.on_bad_row)
    name = split or choose_split(list(dataset.splits), default)
    part = dataset.require(name)

    def batches(tagger: Tagger) -> Iterator[Batch]:
        return example_batches(tagger, part.read(bad_rows))

    return LabelledDocuments(name, batches, bad_rows, hierarchy=source.options.hierarchy)


def open_unseen(
    tagger: Tagger,
    data: Documents,
    split: str | None,
    on_progress: OnProgress,
    allow_training_documents: bool = False,
) -> LabelledDocuments:
    """Read documents to calibrate or mix on: valid, or the only part, if `split` is None.

    If the data has no valid part and the model was trained on it, the valid part is the one that
    was cut from train for that training. Other documents that the model was trained on raise
    DataError, or give a warning if they are allowed.
    """
    cut = _open_cut_valid(tagger, data) if split in (None, "valid") else None
    documents = open_documents(data, split, "valid") if cut is None else cut
    read, seen = [], SeenCounts(tagger)
    count = count_up("reading", on_progress, documents.n_documents)
    for batch in seen.watch(documents.batches(tagger)):
        read.append(batch)
        count(len(batch.labels))
    documents.bad_rows.report()
    share, n_documents = seen.share, sum(len(batch.labels) for batch in read)
    if share > MAX_SEEN:
        problem = (
            f"The model was trained on about {share:.0%} of these documents, and is more confident "
            "about them than about others: what is fitted on them promises an accuracy that new "
            "documents do not reach."
        )
        if not allow_training_documents:
            raise DataError(
                f"{problem} Give documents that it has not seen, such as a valid part; or add "
                "--allow-training-documents (in Python: allow_training_documents=True)."
            )
        log.warning(problem)
    return LabelledDocuments(
        documents.split,
        lambda _: iter(read),
        n_documents=n_documents,
        share_trained_on=share if share > MAX_SEEN else 0.0,
    )


def _open_cut_valid(tagger: Tagger, data: Documents) -> LabelledDocuments | None:
    """Return the valid part that was cut from train, if a model was trained on the rest of it."""
    source = read_source(data)
    if source is None or source.prepared_folder is not None:
        return None
    splits = source.open().splits
    if "train" not in splits or "valid" in splits:
        return None
    if not is_seen(tagger, open_documents(replace(source, cut_valid=False), "train")):
        return None
    if tagger.hierarchy is not None and tagger.hierarchy.closes_labels:
        options = replace(source.options, hierarchy=tagger.hierarchy)
        source = replace(source, options=options)
    valid = open_documents(replace(source, cut_valid=True), "valid")
    if is_seen(tagger, valid):
        return None
    log.info(
        f"The model was trained on {source}: only the valid part that was cut off then is used."
    )
    return valid


def is_seen(tagger: Tagger, documents: LabelledDocuments) -> bool:
    """Return whether a model was trained on some of the first documents."""
    seen = SeenCounts(tagger)
    for _ in seen.watch(islice(documents.batches(tagger), BATCHES_LOOKED_AT)):
        pass
    return seen.share > MAX_SEEN


class SeenCounts:
    """How many documents a model, or a member of a mixture, was trained on.

    Short texts such as "thanks" are equal to others by chance. So a text counts once, however often
    it occurs, and by its number of words.
    """

    def __init__(self, tagger: Tagger) -> None:
        self.trained = tagger.trained_documents
        self._lengths: dict[int, int] = {}  # of texts, by hash

    def watch(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the same batches, and count their documents."""
        for batch in batches:
            if self.trained is not None:
                is_text = batch.text_hashes != NOTHING
                hashes, lengths = batch.text_hashes[is_text], batch.tokens.lengths[is_text]
                self._lengths.update(zip(hashes.tolist(), lengths.tolist(), strict=True))
            yield batch

    @property
    def share(self) -> float:
        """The share of the words in texts that were trained on; 0 if that is not known."""
        if self.trained is None:
            return 0.0
        lengths = np.array(list(self._lengths.values()), dtype=np.int64)
        is_seen = np.isin(np.array(list(self._lengths), dtype=np.uint64), self.trained)
        return float(lengths[is_seen].sum() / max(lengths.sum(), 1))


def example_batches(tagger: Tagger, examples: Iterable[Example]) -> Iterator[Batch]:
    """Yield a stream of documents in batches of token ids: as many as the tagger searches."""
    for batch in batched(examples, tagger.batch_size):
        if not all(isinstance(example, Example) for example in batch):
            raise DataError("Documents with labels are given as setrnn.Example(id, text, labels).")
        tokens = tagger.encoder.encode(
            [example.text for example in batch],
            [example.features for example in batch],
            partial(name_example, batch),
        )
        hashes = hash_texts(example.text for example in batch)
        labels = close_truth(tagger, (each.labels for each in batch))
        unknown, rows = None, encode_unknown(batch, tagger.labels.index)
        if rows is not None:
            unknown = mark_unknown(rows, tagger.labels.encode(labels), len(tagger.labels))
        yield Batch(tokens, labels, hashes, unknown)


def close_truth(tagger: Tagger, label_sets: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return true sets, closed if the label sets of training were closed (`close_labels`)."""
    if tagger.hierarchy is None or not tagger.hierarchy.closes_labels:
        return list(label_sets)
    return [tagger.hierarchy.close(labels) for labels in label_sets]


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
    for start in range(0, len(part), tagger.batch_size):
        stop = min(start + tagger.batch_size, len(part))
        rows = part.labels.rows(start, stop)
        truth = close_truth(tagger, (tuple(names[label] for label in row) for row in rows))
        hashes = np.asarray(part.text_hashes[start:stop])
        unknown = part.mark_unknown(len(prepared.labels), np.arange(start, stop))
        if unknown is not None:  # the model may have its labels in another order, and more
            columns = [prepared.labels.index.get(name, -1) for name in tagger.labels.names]
            unknown = np.pad(unknown, ((0, 0), (0, 1)))[:, columns]
        yield Batch(part.tokens.rows(start, stop), truth, hashes, unknown)


def keep_complete(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield the documents whose labels are all known."""
    for batch in batches:
        if batch.unknown is None:
            yield batch
        elif batch.is_complete.any():
            yield batch.take(np.flatnonzero(batch.is_complete))


def take_documents(documents: LabelledDocuments, rows: Ints) -> LabelledDocuments:
    """Return some documents of a part, by their numbers in ascending order."""

    def batches(tagger: Tagger) -> Iterator[Batch]:
        start = 0
        for batch in documents.batches(tagger):
            n_documents = len(batch.labels)
            own = rows[(rows >= start) & (rows < start + n_documents)] - start
            start += n_documents
            if len(own):
                yield batch.take(own)

    return replace(documents, batches=batches, n_documents=len(rows))
