"""Read the public RCV1-v2 files (Lewis et al. 2004): token files and topic qrels.

The test split is those of the four `pt` files that the folder holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.read.printing import printable, shown
from setrnn.data.read.reader import (
    BadRows,
    Format,
    ReadOptions,
    Split,
    find_packed,
    numbered_lines,
)
from setrnn.data.read.row import RowProblem, bad_line, decode, read_rows, too_long
from setrnn.errors import DataError

TOKEN_FILES = {
    "train": ("lyrl2004_tokens_train.dat",),
    "test": tuple(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)),
}
TOPICS_FILE = "rcv1-v2.topics.qrels"

Topics = dict[int, tuple[str, ...]]


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find the token files and their topics."""
    topics = find_packed(place / TOPICS_FILE)
    splits: dict[str, Split] = {}
    for split, names in TOKEN_FILES.items():
        tokens = tuple(path for name in names if (path := find_packed(place / name)))
        if not tokens:
            continue
        if topics is None and options.require_labels:
            raise DataError(
                f"{place} holds {tokens[0].name} but not its labels. Put {TOPICS_FILE} "
                "(or .gz) beside it: it comes with the RCV1-v2 files."
            )
        files = (*tokens, topics) if topics else tokens
        splits[split] = Split(files, partial(_read, tokens, topics, options))
    return splits


def _read(
    tokens: tuple[Path, ...], topics: Path | None, options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream the documents of a split; the topics are kept in memory."""
    labels = _read_topics(topics, options, bad_rows) if topics else {}

    def make(lines: list[bytes], line: int) -> Example:
        document, text = _document(lines, options.max_row_bytes)
        if options.require_labels and document not in labels:
            raise RowProblem(f"document {document} is not in {TOPICS_FILE}. Use the complete file.")
        return Example(str(document), text, labels.get(document, ()))

    for path in tokens:
        records = _records(path, options.max_row_bytes)
        yield from read_rows(records, make, bad_rows, f"{printable(path.name)} line")


def _read_topics(path: Path, options: ReadOptions, bad_rows: BadRows) -> Topics:
    """Read the topics of each document; documents with equal topics share one tuple."""
    topics: Topics = {}
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    for number, line in numbered_lines(path, options.max_row_bytes):
        fields = line.split()
        if not fields:
            continue
        try:
            if len(fields) != 3 or fields[2] not in (b"0", b"1"):
                start = line[:100].decode(errors="replace").strip()
                raise RowProblem(f"must read 'TOPIC DOCUMENT 1', got {shown(start)}. Correct it.")
            document, topic = _document_number(fields[1]), decode(fields[0])
        except RowProblem as problem:
            bad_rows.add(bad_line(path, number, problem))
            continue
        if fields[2] == b"1":
            grown = (*topics.get(document, ()), topic)
            topics[document] = shared.setdefault(grown, grown)
    return topics


def _records(path: Path, max_bytes: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number of the first line and the lines of each record.

    A record ends at a blank line or at the next `.I`. A record over the limit is truncated, but
    stays over the limit.
    """
    first, lines, n_bytes = 0, list[bytes](), 0
    for number, line in numbered_lines(path, max_bytes):
        is_blank = not line.strip()
        if lines and (is_blank or line.startswith(b".I")):
            yield first, lines
            lines, n_bytes = [], 0
        if is_blank:
            continue
        first = first if lines else number
        if n_bytes <= max_bytes:
            lines.append(line)
            n_bytes += len(line)
    if lines:
        yield first, lines


def _document(lines: list[bytes], max_bytes: int) -> tuple[int, str]:
    """Return the number and the text of a record."""
    head = lines[0].split()
    if len(head) != 2 or head[0] != b".I":
        raise RowProblem(
            "is not a record. Begin each with '.I NUMBER', and leave no blank line in it."
        )
    number = _document_number(head[1])
    if len(lines) < 2 or lines[1].strip() != b".W":
        raise RowProblem(f"document {number} has no '.W' line. Put it before the words.")
    if sum(map(len, lines)) > max_bytes:
        raise too_long(max_bytes)
    return number, " ".join(decode(line.strip()) for line in lines[2:])


def _document_number(field: bytes) -> int:
    if field.isdigit() and len(field) < 19:
        return int(field)
    start = field[:100].decode(errors="replace")
    raise RowProblem(f"the document must be a number, got {shown(start)}. Correct it.")


FORMAT = Format(find, fixed_names="lyrl2004_tokens_train.dat (RCV1-v2)")
