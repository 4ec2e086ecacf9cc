"""Cut documents into parts so that rare labels reach every part; a valid part, where none is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial

from setrnn.data.example import Example
from setrnn.data.formats import BadRows, Dataset, Split
from setrnn.data.formats.reader import OnBadRow
from setrnn.data.statistics import text_hash
from setrnn.data.stratify import stratified_split
from setrnn.errors import DataError

VALID_SHARE = 0.1  # of train, where a valid part is cut from it
SEED = 0

_TRAIN, _VALID = 0, 1


def cut(examples: Iterable[Example], shares: Sequence[float], seed: int) -> list[int]:
    """Return the part of each document; the same texts get the same part."""
    return _share_out(*_sets_and_texts(examples), shares, seed)


def with_valid(dataset: Dataset) -> Dataset:
    """Cut a valid part from train where the data has none; always the same documents.

    Nothing is read before a part is: the first reading then takes one pass over train more.
    """
    if "valid" in dataset.splits:
        return dataset
    train = dataset.require("train")

    @cache
    def parts(on_bad_row: OnBadRow) -> list[int]:
        label_sets, texts = _sets_and_texts(train.read(BadRows(on_bad_row)))
        try:
            return _share_out(label_sets, texts, (1 - VALID_SHARE, VALID_SHARE), SEED)
        except DataError as error:
            raise DataError(
                f"{dataset.place} has no 'valid' part, and too few different texts to cut one "
                f"from train ({len(set(texts))}). Add documents."
            ) from error

    def read(part: int, bad_rows: BadRows) -> Iterator[Example]:
        # The rows that cannot be read are those of train: they are counted once.
        counted = bad_rows if part == _TRAIN else BadRows(bad_rows.on_bad_row)
        of_document = parts(bad_rows.on_bad_row)
        for example, its_part in zip(train.read(counted), of_document, strict=True):
            if its_part == part:
                yield example

    others = {name: split for name, split in dataset.splits.items() if name != "train"}
    cut_parts = {
        "train": Split(train.files, partial(read, _TRAIN)),
        "valid": Split(train.files, partial(read, _VALID)),
    }
    return Dataset(dataset.name, dataset.place, {**cut_parts, **others}, valid_is_cut=True)


def _sets_and_texts(examples: Iterable[Example]) -> tuple[list[tuple[str, ...]], list[int]]:
    """Return the labels of each document, and a number that copies of its text share."""
    label_sets = []
    number_of: dict[bytes, int] = {}
    texts = []
    for example in examples:
        label_sets.append(example.labels)
        texts.append(number_of.setdefault(text_hash(example.text), len(number_of)))
    return label_sets, texts


def _share_out(
    label_sets: list[tuple[str, ...]], texts: list[int], shares: Sequence[float], seed: int
) -> list[int]:
    return [int(part) for part in stratified_split(label_sets, shares, seed, texts)]
