"""Read the public RCV1-v2 files (Lewis et al. 2004): token files and topic qrels.

The test split is those of the four `pt` files that the folder holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.read.lines import RowProblem, decode, numbered_lines, numbered_records
from setrnn.data.read.reader import BadRows, Format, ReadOptions, Split
from setrnn.data.read.row import read_rows
from setrnn.errors import DataError, shown

TOKEN_FILES = {
    "train": ("lyrl2004_tokens_train.dat",),
    "test": tuple(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)),
}
TOPICS_FILE = "rcv1-v2.topics.qrels"

Topics = dict[str, tuple[str, ...]]  # by the number of the document


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find the token files and their topics."""
    topics = _find_packed(place / TOPICS_FILE)
    splits: dict[str, Split] = {}
    for split, names in TOKEN_FILES.items():
        tokens = [path for name in names for path in _find_packed(place / name)]
        if not tokens:
            continue
        if not topics and options.require_labels:
            raise DataError(
                f"{place} holds {tokens[0].name} but not its labels. Put {TOPICS_FILE} "
                "(or .gz) beside it: it comes with the RCV1-v2 files."
            )
        splits[split] = Split((*tokens, *topics), partial(_read, tokens, topics, options))
    return splits


def _find_packed(path: Path) -> list[Path]:
    """Find a file under its own name or with .gz added."""
    found = [each for each in (path, path.with_name(f"{path.name}.gz")) if each.is_file()]
    if len(found) == 2:
        raise DataError(f"{path.parent} holds both {path.name} and {path.name}.gz. Remove one.")
    return found


def _read(
    tokens: list[Path], topics: list[Path], options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream the documents of a split; the topics are kept in memory."""
    labels: Topics = {}
    for path in topics:
        labels = _read_topics(path, options, bad_rows)

    def make(record: bytes, line: int) -> Example:
        rows = [*decode(record, max_bytes).split("\n"), ""]
        head, words, *lines = map(str.strip, rows)
        number = head.removeprefix(".I").strip()
        if not number.isdecimal() or words != ".W":
            raise RowProblem("is not a record. Begin each with the lines '.I NUMBER' and '.W'.")
        if options.require_labels and number not in labels:
            raise RowProblem(f"document {number} is not in {TOPICS_FILE}. Use the complete file.")
        return Example(number, " ".join(filter(None, lines)), labels.get(number, ()))

    max_bytes = options.max_row_bytes
    for path in tokens:
        records = numbered_records(path, b".I", max_bytes)
        yield from read_rows(records, make, bad_rows, f"{path.name} line")


def _read_topics(path: Path, options: ReadOptions, bad_rows: BadRows) -> Topics:
    """Read the topics of each document; documents with equal topics share one tuple."""
    topics: Topics = {}
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    for number, line in numbered_lines(path, options.max_row_bytes):
        try:
            fields = decode(line, options.max_row_bytes).split()
            if fields and (len(fields) != 3 or fields[2] not in ("0", "1")):
                raise RowProblem(
                    f"must read 'TOPIC DOCUMENT 1', got {shown(' '.join(fields))}. Correct it."
                )
        except RowProblem as problem:
            bad_rows.add(f"{path.name} line {number}", problem)
            continue
        if fields and fields[2] == "1":
            topic, document, _ = fields
            grown = (*topics.get(document, ()), topic)
            topics[document] = shared.setdefault(grown, grown)
    return topics


FORMAT = Format(finder=find, fixed_names="lyrl2004_tokens_train.dat (RCV1-v2)")
