"""Old and new documents as one dataset: a new document replaces an older one.

Two documents are the same if they have the same id, or the same text. Ids that a reader made up for
rows without one, such as train-41, do not count. All documents are kept in memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from setrnn.data.cache import Source
from setrnn.data.example import Example
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.preparing import Stream
from setrnn.data.read import BadRows, Dataset, Split
from setrnn.data.read.lines import file_stem
from setrnn.data.sketch import DocumentSketch, hash_texts, text_hash
from setrnn.data.splits import MIN_VALID, VALID_SHARE, cut_train, with_valid

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
    n_skipped: int = 0  # rows that cannot be read
    notes: list[str] = field(default_factory=list)

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


def merge(new: Source, old: Source | None = None, trained: DocumentSketch | None = None) -> Merged:
    """Find the parts of old and new documents; old ones that a new one replaces are left out.

    The valid part of either is its own if it has one. Otherwise that of the old documents is what
    the model was not trained on, and a tenth of the new documents is set aside.

    Args:
        new: the new documents.
        old: the documents that the model was trained on, if they are given.
        trained: which documents the model was trained on, if that is known.
    """
    dataset = _open(replace(new, options=replace(new.options, keep_columns=True)))
    merged = Merged(dataset.name)
    found = _read(dataset, new, merged)
    merged.new = {
        part: [replace(each, columns=None) for each in documents if _is_reviewed(each)]
        for part, documents in found.items()
    }
    if n_left_out := sum(map(len, found.values())) - sum(merged.n_new.values()):
        merged.notes.append(
            f"{n_left_out:,} of the new documents were accepted, but reviewed by nobody "
            '("reviewed": false): they are left out, since their labels are those of a model.'
        )
    if old is not None:
        _add_old(merged, old, _made_up_ids(dataset), trained)
    if "valid" not in merged.new and merged.n_new["train"] >= MIN_NEW:
        cut = _share_off if merged.n_old.get("valid", 0) >= MIN_VALID else with_valid
        merged.new = _cut(merged.new["train"], dataset, cut)
    return merged


def _open(source: Source) -> Dataset:
    dataset = source.open()
    dataset.require("train")
    return dataset


def _read(dataset: Dataset, source: Source, merged: Merged) -> dict[str, list[Example]]:
    """Read the documents of each part."""
    found = {}
    for part in READ:
        if part in dataset.splits:
            bad_rows = BadRows(source.on_bad_row)
            found[part] = list(dataset.splits[part].read(bad_rows))
            merged.n_skipped += bad_rows.n_skipped
            merged.notes += [text for text in bad_rows.notes if text not in merged.notes]
    return found


def _is_reviewed(example: Example) -> bool:
    """Return whether a person has looked at a document: an export of the page says if not."""
    return str((example.columns or {}).get("reviewed", "")).strip().lower() != "false"


def _made_up_ids(dataset: Dataset) -> Callable[[str], bool]:
    """Return what recognises the ids that a reader gave to rows without one."""
    files = {file for part in READ if part in dataset.splits for file in dataset.splits[part].files}
    stems = "|".join(re.escape(file_stem(file)) for file in sorted(files))
    pattern = re.compile(rf"(.*:)?({stems})-\d+", re.DOTALL)
    return lambda name: bool(stems) and pattern.fullmatch(name) is not None


def _share_off(dataset: Dataset) -> Dataset:
    """Cut a tenth from train, however small it is."""
    return cut_train(dataset, {"train": 1 - VALID_SHARE, "valid": VALID_SHARE})


def _cut(
    train: Sequence[Example], dataset: Dataset, cut: Callable[[Dataset], Dataset]
) -> dict[str, list[Example]]:
    """Cut documents into train and valid."""
    files: tuple[Path, ...] = dataset.splits["train"].files
    whole = replace(dataset, splits={"train": Split(files, lambda _: iter(train))})
    return {part: list(split.read(BadRows())) for part, split in cut(whole).splits.items()}


def _add_old(
    merged: Merged,
    source: Source,
    is_made_up_new: Callable[[str], bool],
    trained: DocumentSketch | None,
) -> None:
    """Add the parts of the old documents."""
    dataset = _open(source)
    merged.old_name = dataset.name
    found, is_made_up = _read(dataset, source, merged), _made_up_ids(dataset)
    train, is_seen = found["train"], None
    if trained is not None and trained.is_complete:
        is_seen = trained.recognise(hash_texts(each.text for each in train))
        merged.share_seen = float(is_seen.mean())
    if "valid" not in found:
        if is_seen is not None and MIN_NEW <= (~is_seen).sum() <= MAX_UNSEEN * len(train):
            pairs = list(zip(train, is_seen.tolist(), strict=True))
            found = {
                "train": [each for each, seen in pairs if seen],
                "valid": [each for each, seen in pairs if not seen],
            }
        else:
            found = _cut(train, dataset, with_valid)
    new = [each for documents in merged.new.values() for each in documents]
    texts = {text_hash(each.text) for each in new}
    text_of_id = {each.id: text_hash(each.text) for each in new if not is_made_up_new(each.id)}
    for part, documents in found.items():
        merged.old[part] = []
        for example in documents:
            text = text_hash(example.text)
            own_text = None if is_made_up(example.id) else text_of_id.get(example.id)
            if own_text is None and text not in texts:
                merged.old[part].append(example)
                continue
            merged.n_replaced += 1
            merged.n_other_texts += own_text not in (None, text)
