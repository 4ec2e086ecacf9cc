"""Read the public RCV1-v2 files (Lewis et al. 2004): token files and topic qrels.

The test split is those of the four `pt` files that the folder holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from sys import intern

from setrnn.data.example import Example
from setrnn.data.read.lines import RowProblem, decode, numbered_lines, numbered_records
from setrnn.data.read.reader import BadRows, Format, ReadOptions, Split
from setrnn.data.read.row import read_rows
from setrnn.errors import DataError, shown

TOKEN_FILES = {"train": "lyrl2004_tokens_train.dat", "test": "lyrl2004_tokens_test_pt[0-3].dat"}
TOPICS_FILE = "rcv1-v2.topics.qrels"


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find the token files and their topics, each plain or packed."""
    topics = _find_packed(place, TOPICS_FILE)
    splits: dict[str, Split] = {}
    for split, pattern in TOKEN_FILES.items():
        if not (tokens := _find_packed(place, pattern)):
            continue
        if not topics and options.require_labels:
            raise DataError(
                f"{place} holds {tokens[0].name} but not its labels. Put {TOPICS_FILE} "
                "(or .gz) beside it: it comes with the RCV1-v2 files."
            )
        splits[split] = Split((*tokens, *topics), partial(_read, tokens, topics, options))
    return splits


def _find_packed(place: Path, pattern: str) -> list[Path]:
    """Find files under their own names or with .gz added."""
    found = sorted(each for end in ("", ".gz") for each in place.glob(pattern + end))
    if twice := next((each for each in found if each.with_name(f"{each.name}.gz") in found), None):
        raise DataError(f"{place} holds both {twice.name} and {twice.name}.gz. Remove one.")
    return found


def _read(
    tokens: list[Path], topics: list[Path], options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream the documents of a split; the topics are kept in memory."""
    max_bytes = options.max_row_bytes
    labels: dict[str, list[str]] = defaultdict(list)  # by the number of the document

    def add_topic(line: bytes, _: int) -> None:
        fields = decode(line, max_bytes).split()
        if fields and (len(fields) != 3 or fields[2] not in ("0", "1")):
            raise RowProblem(
                f"must read 'TOPIC DOCUMENT 1', got {shown(' '.join(fields))}. Correct it."
            )
        if fields and fields[2] == "1":
            labels[fields[1]].append(intern(fields[0]))  # kept once for all documents

    def make(record: bytes, _: int) -> Example:
        rows = [*decode(record, max_bytes).split("\n"), ""]
        head, words, *lines = map(str.strip, rows)
        number = head.removeprefix(".I").strip()
        if not number.isdecimal() or words != ".W":
            raise RowProblem("is not a record. Begin each with the lines '.I NUMBER' and '.W'.")
        if options.require_labels and number not in labels:
            raise RowProblem(f"document {number} is not in {TOPICS_FILE}. Use the complete file.")
        return Example(number, " ".join(filter(None, lines)), tuple(labels.get(number, ())))

    for path in topics:
        rows = numbered_lines(path, max_bytes)
        yield from read_rows(rows, add_topic, bad_rows, f"{path.name} line")
    for path in tokens:
        rows = numbered_records(path, b".I", max_bytes)
        yield from read_rows(rows, make, bad_rows, f"{path.name} line")


FORMAT = Format(finder=find, fixed_names="lyrl2004_tokens_train.dat (RCV1-v2)")
