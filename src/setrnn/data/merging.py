"""Old and new documents as one dataset: a new document replaces an older one.

Two documents are the same if they have the same id, or the same text. Ids that a reader made up for
rows without one, such as train-41, do not count. All documents are kept in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from setrnn.data.cache import Stream
from setrnn.data.example import Example, Hashes, hash_texts, text_hash
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read import BadRows, Dataset
from setrnn.data.read.lines import file_stem
from setrnn.data.source import Source
from setrnn.data.splits import MIN_VALID, VALID_SHARE, choose_parts

READ = ("train", "valid")  # other parts are not read
MIN_NEW = 20  # of fewer new documents, none are set aside for the valid part
MAX_UNSEEN = 0.5  # of old documents: if a model has not seen more, they are not its own


@dataclass
class Merged:
    """Old and new documents, each cut into train and valid."""

    name: str  # of the new data
    old_name: str | None = None
    old: dict[str, list[Example]] = field(default_factory=dict)  # by part
    new: dict[str, list[Example]] = field(default_factory=dict)
    n_replaced: int = 0  # old documents that a new one replaces
    n_other_texts: int = 0  # of these, documents with the same id and another text
    share_seen: float | None = None  # of the old documents, by the model; None if not known
    bad_rows: BadRows = field(default_factory=BadRows)

    @property
    def has_old(self) -> bool:
        """Whether old documents were given."""
        return self.old_name is not None

    @property
    def n_old(self) -> dict[str, int]:
        """The number of old documents of each part."""
        return {part: len(documents) for part, documents in self.old.items()}

    @property
    def n_new(self) -> dict[str, int]:
        """The number of new documents of each part."""
        return {part: len(documents) for part, documents in self.new.items()}

    def streams(self, hierarchy: Hierarchy | None = None) -> dict[str, Stream]:
        """Return train and valid, the old documents first; a part without documents is left out.

        With a hierarchy, each document also has the labels above its own.
        """
        joined = {part: [*self.old.get(part, ()), *self.new.get(part, ())] for part in READ}
        close: Callable[[Iterable[Example]], Iterable[Example]] = (
            iter if hierarchy is None else hierarchy.close_examples
        )
        return {part: partial(close, documents) for part, documents in joined.items() if documents}


def merge(new: Source, old: Source | None = None, trained: Hashes | None = None) -> Merged:
    """Find the parts of old and new documents; old ones that a new one replaces are left out.

    The valid part of either is its own if it has one. Otherwise that of the old documents is what
    the model was not trained on, and a tenth of the new documents is set aside.

    Args:
        new: the new documents.
        old: the documents that the model was trained on, if they are given.
        trained: the hashes of the documents that the model was trained on, if they are known.
    """
    new = replace(new, options=replace(new.options, keep_columns=True))
    dataset = new.open()
    merged = Merged(dataset.name)
    found = _read(dataset, new, merged)
    merged.new = {
        part: [replace(each, columns=None) for each in documents if _is_reviewed(each)]
        for part, documents in found.items()
    }
    if n_left_out := sum(map(len, found.values())) - sum(merged.n_new.values()):
        merged.bad_rows.note(
            f"{n_left_out:,} of the new documents were accepted, but reviewed by nobody "
            '("reviewed": false): they are left out, since their labels are those of a model.'
        )
    if old is not None:
        _add_old(merged, old, _made_up_ids(dataset), trained)
    if "valid" not in merged.new and merged.n_new["train"] >= MIN_NEW:
        is_enough = merged.n_old.get("valid", 0) >= MIN_VALID
        merged.new = _cut(merged.new["train"], VALID_SHARE if is_enough else None)
    return merged


def _read(dataset: Dataset, source: Source, merged: Merged) -> dict[str, list[Example]]:
    """Read the documents of each part."""
    dataset.require("train")
    merged.bad_rows.on_bad_row = source.on_bad_row
    return {
        part: list(dataset.splits[part].read(merged.bad_rows))
        for part in READ
        if part in dataset.splits
    }


def _is_reviewed(example: Example) -> bool:
    """Return whether a person has looked at a document: an export of the page says if not."""
    return str((example.columns or {}).get("reviewed", "")).strip().lower() != "false"


def _made_up_ids(dataset: Dataset) -> re.Pattern[str]:
    """Return what matches the ids that a reader gave to rows without one."""
    files = {file for part in READ if part in dataset.splits for file in dataset.splits[part].files}
    stems = "|".join(re.escape(file_stem(file)) for file in sorted(files))
    return re.compile(rf"({stems})-\d+" if stems else r"(?!)")


def _cut(train: Sequence[Example], share: float | None = None) -> dict[str, list[Example]]:
    """Cut a share of documents, or what a valid part needs, from train."""
    parts = choose_parts(train, None if share is None else [1 - share, share])
    return {
        name: [each for each, part in zip(train, parts, strict=True) if part == number]
        for number, name in enumerate(READ)
    }


def _add_old(
    merged: Merged, source: Source, made_up_new: re.Pattern[str], trained: Hashes | None
) -> None:
    """Add the parts of the old documents."""
    dataset = source.open()
    merged.old_name = dataset.name
    found, made_up = _read(dataset, source, merged), _made_up_ids(dataset)
    train, is_seen = found["train"], None
    if trained is not None:
        is_seen = np.isin(hash_texts(each.text for each in train), trained)
        merged.share_seen = float(is_seen.mean())
    if "valid" not in found:
        if is_seen is not None and MIN_NEW <= (~is_seen).sum() <= MAX_UNSEEN * len(train):
            pairs = list(zip(train, is_seen.tolist(), strict=True))
            found = {
                "train": [each for each, seen in pairs if seen],
                "valid": [each for each, seen in pairs if not seen],
            }
        else:
            found = _cut(train)
    new = [each for documents in merged.new.values() for each in documents]
    texts = {text_hash(each.text) for each in new}
    text_of_id = {e.id: text_hash(e.text) for e in new if not made_up_new.fullmatch(e.id)}
    for part, documents in found.items():
        merged.old[part] = []
        for example in documents:
            text = text_hash(example.text)
            own_text = None if made_up.fullmatch(example.id) else text_of_id.get(example.id)
            if own_text is None and text not in texts:
                merged.old[part].append(example)
                continue
            merged.n_replaced += 1
            merged.n_other_texts += own_text not in (None, text)
