"""Old and new documents as one dataset: a new document replaces an older one.

Two documents are the same if they have the same id, or the same text. Ids that a reader made up for
rows without one, such as train-41, do not count.
"""

# n documents

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from setrnn.data.cache import Source
from setrnn.data.example import Example
from setrnn.data.preparing import Stream
from setrnn.data.read import BadRows, Dataset, Split
from setrnn.data.read.lines import file_stem
from setrnn.data.sketch import DocumentSketch, hash_texts, text_hash
from setrnn.data.splits import LEAST_VALID, VALID_SHARE, cut_train, with_valid
from setrnn.data.streaming import batched
from setrnn.errors import DataError

READ = ("train", "valid")  # other parts are not read
MIN_NEW = 20  # of fewer new documents, none are set aside for the valid part
MAX_UNSEEN = 0.5  # of old documents: if a model has not seen more, they are not its own
BATCH = 4096

Bools = npt.NDArray[np.bool_]


@dataclass
class Merged:
    """Old and new documents, each cut into train and valid; they are read when asked for."""

    name: str  # of the new data
    old_name: str | None = None
    old: dict[str, Stream] = field(default_factory=dict)  # by part
    new: dict[str, Stream] = field(default_factory=dict)
    n_old: dict[str, int] = field(default_factory=dict)  # documents of each part
    n_new: dict[str, int] = field(default_factory=dict)
    n_replaced: int = 0  # old documents that a new one replaces
    n_other_texts: int = 0  # of these, documents with the same id and another text
    share_seen: float | None = None  # of the old documents, by the model; None if not known
    n_skipped: int = 0  # rows that cannot be read
    notes: list[str] = field(default_factory=list)

    def streams(self) -> dict[str, Stream]:
        """Return train and valid, the old documents first; a part without documents is left out."""
        return {
            part: partial(self._read, part)
            for part in READ
            if self.n_old.get(part) or self.n_new.get(part)
        }

    def _read(self, part: str) -> Iterator[Example]:
        return chain.from_iterable(each[part]() for each in (self.old, self.new) if part in each)


def merge(new: Source, old: Source | None = None, trained: DocumentSketch | None = None) -> Merged:
    """Find the parts of old and new documents; old ones that a new one replaces are left out.

    The valid part of either is its own if it has one. Otherwise that of the old documents is what
    the model was not trained on, and a tenth of the new documents is set aside.

    Args:
        new: the new documents.
        old: the documents that the model was trained on, if they are given.
        trained: which documents the model was trained on, if that is known.
    """
    fresh = _open(replace(new, options=replace(new.options, keep_columns=True)))
    merged = Merged(fresh.name)
    text_of_id, texts = _read_keys(fresh, new, merged)
    fresh = replace(fresh, splits={name: _reviewed(each) for name, each in fresh.splits.items()})
    if old is not None:
        _add_old(merged, old, text_of_id, texts, trained)
    if "valid" not in fresh.splits and merged.n_new["train"] >= MIN_NEW:
        if merged.n_old.get("valid", 0) >= LEAST_VALID:
            fresh = cut_train(fresh, {"train": 1 - VALID_SHARE, "valid": VALID_SHARE})
        else:
            fresh = with_valid(fresh)
    for part in READ:
        if part in fresh.splits:
            stream = partial(_read, fresh.splits[part], new)
            merged.new[part] = stream
            merged.n_new[part] = sum(1 for _ in stream())
    return merged


def _open(source: Source) -> Dataset:
    if source.prepared_folder is not None:
        raise DataError(
            f"{source} is a prepared folder: it holds numbers, not documents. Give the data that "
            "it was made from."
        )
    dataset = source.open()
    dataset.require("train")
    return dataset


def _read(split: Split, source: Source) -> Iterator[Example]:
    return split.read(BadRows(source.on_bad_row))


def _is_reviewed(example: Example) -> bool:
    """Return whether a person has looked at a document: an export of the page says if not."""
    return str((example.columns or {}).get("reviewed", "")).strip().lower() != "false"


def _reviewed(split: Split) -> Split:
    """Leave out the documents that nobody has reviewed."""

    def read(bad_rows: BadRows) -> Iterator[Example]:
        for example in split.read(bad_rows):
            if _is_reviewed(example):
                yield replace(example, columns=None)

    return Split(split.files, read)


def _read_keys(
    dataset: Dataset, source: Source, merged: Merged
) -> tuple[dict[str, bytes], set[bytes]]:
    """Read the new documents once: the hashes of their texts, by id and all, and their number."""
    text_of_id: dict[str, bytes] = {}
    texts: set[bytes] = set()
    n_left_out = 0
    for part in READ:
        if part not in dataset.splits:
            continue
        split, bad_rows = dataset.splits[part], BadRows(source.on_bad_row)
        is_made_up = _made_up_ids(split)
        merged.n_new[part] = 0
        for example in split.read(bad_rows):
            if not _is_reviewed(example):
                n_left_out += 1
                continue
            text = text_hash(example.text)
            texts.add(text)
            if not is_made_up(example.id):
                text_of_id[example.id] = text
            merged.n_new[part] += 1
        _note_rows(merged, bad_rows)
    if n_left_out:
        merged.notes.append(
            f"{n_left_out:,} of the new documents were accepted, but reviewed by nobody "
            '("reviewed": false): they are left out, since their labels are those of a model.'
        )
    return text_of_id, texts


def _made_up_ids(split: Split) -> Callable[[str], bool]:
    """Return what recognises the ids that a reader gave to rows without one."""
    stems = "|".join(re.escape(file_stem(file)) for file in split.files)
    pattern = re.compile(rf"(.*:)?({stems})-\d+", re.DOTALL)
    return lambda name: bool(stems) and pattern.fullmatch(name) is not None


def _note_rows(merged: Merged, bad_rows: BadRows) -> None:
    merged.n_skipped += bad_rows.n_skipped
    merged.notes += [text for text in bad_rows.notes if text not in merged.notes]


def _add_old(
    merged: Merged,
    source: Source,
    text_of_id: Mapping[str, bytes],
    texts: Collection[bytes],
    trained: DocumentSketch | None,
) -> None:
    """Add the parts of the old documents."""
    dataset = _open(source)
    merged.old_name = dataset.name
    is_seen = _find_trained(dataset.splits["train"], source, merged, trained)
    merged.share_seen = None if is_seen is None else float(is_seen.mean())
    cuts: dict[str, Bools | None] = {"train": None, "valid": None}  # rows of train; None for all
    if "valid" not in dataset.splits:
        if is_seen is not None and MIN_NEW <= (~is_seen).sum() <= MAX_UNSEEN * len(is_seen):
            cuts = {"train": is_seen, "valid": ~is_seen}
            dataset.splits["valid"] = dataset.splits["train"]
        else:
            dataset = with_valid(dataset)
    for part in READ:
        split = dataset.splits[part]
        is_made_up, is_own = _made_up_ids(split), cuts[part]
        is_kept = []
        for number, example in enumerate(_read(split, source)):
            if is_own is not None and not is_own[number]:
                is_kept.append(False)
                continue
            text = text_hash(example.text)
            own_text = None if is_made_up(example.id) else text_of_id.get(example.id)
            is_replaced = own_text is not None or text in texts
            merged.n_replaced += is_replaced
            merged.n_other_texts += own_text not in (None, text)
            is_kept.append(not is_replaced)
        merged.old[part] = partial(_read_kept, split, source, is_kept)
        merged.n_old[part] = sum(is_kept)


def _read_kept(split: Split, source: Source, is_kept: Sequence[bool]) -> Iterator[Example]:
    for example, kept in zip(_read(split, source), is_kept, strict=True):
        if kept:
            yield example


def _find_trained(
    split: Split, source: Source, merged: Merged, trained: DocumentSketch | None
) -> Bools | None:
    """Return which documents the model was trained on; None if that is not known of each."""
    bad_rows, found = BadRows(source.on_bad_row), list[Bools]()
    for texts in batched((example.text for example in split.read(bad_rows)), BATCH):
        if trained is not None and trained.is_complete:  # bad rows are counted either way
            found.append(trained.recognise(hash_texts(texts)))
    _note_rows(merged, bad_rows)
    return np.concatenate(found) if found else None
