"""Read the public AAPD files: `text_train` and `label_train`, one document per line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.formats.reader import (
    SPLIT_NAMES,
    BadRows,
    Format,
    ReadOptions,
    Split,
    numbered_lines,
)
from setrnn.data.formats.row import RowProblem, bad_line, decode, nul_byte, too_long
from setrnn.errors import DataError


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find pairs of text and label files; without required labels, texts are enough."""
    splits: dict[str, Split] = {}
    for stem, split in SPLIT_NAMES.items():
        texts, labels = place / f"text_{stem}", place / f"label_{stem}"
        has_labels = labels.is_file()
        if not texts.is_file() or (options.require_labels and not has_labels):
            continue
        if split in splits:
            other = splits[split].files[0].name
            raise DataError(
                f"{place} holds the split '{split}' twice: {other} and {texts.name}. Remove one."
            )
        splits[split] = (
            Split((texts, labels), partial(_read_pairs, texts, labels, split, options))
            if has_labels
            else Split((texts,), partial(_read_texts, texts, split, options))
        )
    return splits


def _read_pairs(
    texts: Path, labels: Path, split: str, options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream documents with their labels; raise at the end if the files differ in length."""
    n_texts = n_labels = 0
    for text_line, label_line in zip_longest(
        numbered_lines(texts, options.max_row_bytes), numbered_lines(labels, options.max_row_bytes)
    ):
        n_texts += text_line is not None
        n_labels += label_line is not None
        if text_line is None or label_line is None:
            continue
        number = text_line[0]
        path = texts
        try:
            text = _decode(text_line[1], options)
            path = labels
            names = _decode(label_line[1], options).split()
        except RowProblem as problem:
            bad_rows.add(bad_line(path, number, problem))
            continue
        yield Example(f"{split}-{number}", text, tuple(names))
    if n_texts != n_labels:
        raise DataError(
            f"{texts} has {n_texts:,} lines but {labels.name} has {n_labels:,}. "
            "They must match line by line: copy both again."
        )


def _read_texts(
    texts: Path, split: str, options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream documents without labels."""
    for number, line in numbered_lines(texts, options.max_row_bytes):
        try:
            text = _decode(line, options)
        except RowProblem as problem:
            bad_rows.add(bad_line(texts, number, problem))
            continue
        yield Example(f"{split}-{number}", text)


def _decode(line: bytes, options: ReadOptions) -> str:
    if len(line) > options.max_row_bytes:
        raise too_long(options.max_row_bytes)
    if b"\0" in line:
        raise nul_byte()
    return decode(line).rstrip("\r\n")


FORMAT = Format(find, fixed_names="text_train and label_train (AAPD)")
