"""Read the public AAPD files: `text_train` and `label_train`, one document per line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.read.lines import decode, numbered_lines
from setrnn.data.read.reader import BadRows, Format, ReadOptions, Split, find_files
from setrnn.data.read.row import read_rows
from setrnn.errors import DataError


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find pairs of text and label files; without required labels, texts are enough."""
    splits = {}
    for split, texts in find_files(place, [("text_", "")]).items():
        labels = texts.with_name(texts.name.replace("text_", "label_"))
        if labels.is_file() or not options.require_labels:
            files = (texts, labels) if labels.is_file() else (texts,)
            splits[split] = Split(files, partial(_read, files, split, options))
    return splits


def _read(
    files: tuple[Path, ...], split: str, options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream documents, line by line; raise if the files differ in length."""

    def make(lines: tuple[tuple[int, bytes] | None, ...], number: int) -> Example:
        if None in lines:
            raise DataError(
                f"{files[lines.index(None)]} has {number - 1:,} lines, fewer than the file beside "
                "it. They must match line by line: copy both again."
            )
        text, *labels = (decode(line[1], options.max_row_bytes) for line in lines if line)
        return Example(f"{split}-{number}", text.rstrip("\r\n"), tuple(" ".join(labels).split()))

    streams = [numbered_lines(path, options.max_row_bytes, options.encoding) for path in files]
    pairs = enumerate(zip_longest(*streams), start=1)
    return read_rows(pairs, make, bad_rows, f"{' or '.join(path.name for path in files)} line")


FORMAT = Format(finder=find, fixed_names="text_train and label_train (AAPD)")
