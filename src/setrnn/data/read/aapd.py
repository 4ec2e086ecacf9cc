"""Read the public AAPD files: `text_train` and `label_train`, one document per line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.read.reader import (
    SPLIT_NAMES,
    BadRows,
    Format,
    ReadOptions,
    Split,
    numbered_lines,
)
from setrnn.data.read.row import RowProblem, bad_line, decode, too_long
from setrnn.errors import DataError


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find pairs of text and label files; without required labels, texts are enough."""
    splits: dict[str, Split] = {}
    for stem, split in SPLIT_NAMES.items():
        texts, labels = place / f"text_{stem}", place / f"label_{stem}"
        files = (texts, labels) if labels.is_file() else (texts,)
        if not texts.is_file() or (options.require_labels and len(files) == 1):
            continue
        if split in splits:
            other = splits[split].files[0].name
            raise DataError(
                f"{place} holds the split '{split}' twice: {other} and {texts.name}. Remove one."
            )
        splits[split] = Split(files, partial(_read, files, split, options))
    return splits


def _read(
    files: tuple[Path, ...], split: str, options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream documents, line by line; raise at the end if the files differ in length."""
    n_lines = [0] * len(files)
    streams = [numbered_lines(path, options.max_row_bytes, options.encoding) for path in files]
    for number, lines in enumerate(zip_longest(*streams), start=1):
        n_lines = [number if line else n for line, n in zip(lines, n_lines, strict=True)]
        if min(n_lines) < number:
            continue
        columns = []
        try:
            for _, line in lines:
                if len(line) > options.max_row_bytes:
                    raise too_long(options.max_row_bytes)
                columns.append(decode(line).rstrip("\r\n"))
        except RowProblem as problem:
            bad_rows.add(bad_line(files[len(columns)], number, problem))
            continue
        labels = columns[1].split() if len(columns) > 1 else ()
        yield Example(f"{split}-{number}", columns[0], tuple(labels))
    if min(n_lines) < max(n_lines):
        raise DataError(
            f"{files[0]} has {n_lines[0]:,} lines but {files[1].name} has {n_lines[1]:,}. "
            "They must match line by line: copy both again."
        )


FORMAT = Format(find, fixed_names="text_train and label_train (AAPD)")
