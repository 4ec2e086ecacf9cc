"""Read the public RCV1-v2 files (Lewis et al. 2004): token files and topic qrels.

The test part is as many of the four `pt` files as the folder holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.formats.lines import numbered_lines
from setrnn.data.formats.reader import BadRows, ReadOptions, Split, plain_or_packed
from setrnn.data.formats.row import RowProblem, bad_line, decode, nul_byte, shown, too_long
from setrnn.errors import DataError

TOKEN_FILES = {
    "train": ("lyrl2004_tokens_train.dat",),
    "test": tuple(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)),
}
TOPICS_FILE = "rcv1-v2.topics.qrels"

Topics = dict[int, tuple[str, ...]]


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find the token files, and the topics that belong to them."""
    topics = plain_or_packed(place / TOPICS_FILE)
    splits: dict[str, Split] = {}
    for split, names in TOKEN_FILES.items():
        tokens = tuple(path for name in names if (path := plain_or_packed(place / name)))
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
    """Stream the documents of a split; its topics are held in memory meanwhile."""
    labels = _read_topics(topics, options, bad_rows) if topics else {}
    for path in tokens:
        for number, lines in _records(path, options):
            try:
                document, text = _document(lines, options.max_row_bytes)
                if options.require_labels and document not in labels:
                    raise RowProblem(
                        f"document {document} is not in {TOPICS_FILE}. Use the complete file."
                    )
            except RowProblem as problem:
                bad_rows.add(bad_line(path, number, problem))
                continue
            yield Example(str(document), text, labels.get(document, ()))


def _read_topics(path: Path, options: ReadOptions, bad_rows: BadRows) -> Topics:
    """Read the topics of each document; documents of equal topics share one tuple."""
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
            document, topic = _document_number(fields[1]), _sound(fields[0])
        except RowProblem as problem:
            bad_rows.add(bad_line(path, number, problem))
            continue
        if fields[2] == b"1":
            grown = (*topics.get(document, ()), topic)
            topics[document] = shared.setdefault(grown, grown)
    return topics


def _records(path: Path, options: ReadOptions) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines of each record, up to a blank line or the next `.I`, and where it begins.

    Of a record over the limit only so many lines are kept as show that it is.
    """
    first, lines, n_bytes = 0, list[bytes](), 0
    for number, line in numbered_lines(path, options.max_row_bytes):
        is_blank = not line.strip()
        if lines and (is_blank or line.startswith(b".I")):
            yield first, lines
            lines, n_bytes = [], 0
        if is_blank:
            continue
        first = first if lines else number
        if n_bytes <= options.max_row_bytes:
            lines.append(line)
            n_bytes += len(line)
    if lines:
        yield first, lines


def _document(lines: list[bytes], max_bytes: int) -> tuple[int, str]:
    """Take a record apart into its number and its text."""
    head = lines[0].split()
    if len(head) != 2 or head[0] != b".I":
        raise RowProblem(
            "is no record. Begin each with '.I NUMBER', and leave no blank line in it."
        )
    number = _document_number(head[1])
    if len(lines) < 2 or lines[1].strip() != b".W":
        raise RowProblem(f"document {number} has no '.W' line. Put it before the words.")
    if sum(map(len, lines)) > max_bytes:
        raise too_long(max_bytes)
    return number, " ".join(_sound(line.strip()) for line in lines[2:])


def _document_number(field: bytes) -> int:
    if field.isdigit() and len(field) < 19:
        return int(field)
    start = field[:100].decode(errors="replace")
    raise RowProblem(f"the document must be a number, got {shown(start)}. Correct it.")


def _sound(line: bytes) -> str:
    if b"\0" in line:
        raise nul_byte()
    return decode(line)
