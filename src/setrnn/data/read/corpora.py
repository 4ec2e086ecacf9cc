"""Read the public files of three collections: AAPD, RCV1-v2 and Reuters-21578."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from sys import intern

from setrnn.data.example import Example
from setrnn.data.read.lines import (
    RowProblem,
    check_length,
    decode,
    numbered_lines,
    numbered_records,
)
from setrnn.data.read.reader import BadRows, Format, ReadOptions, Split, find_files
from setrnn.data.read.rows import read_rows
from setrnn.errors import DataError, shown

# RCV1-v2 (Lewis et al. 2004): the test split is those of the four `pt` files that a folder holds.
TOKEN_FILES = {"train": "lyrl2004_tokens_train.dat", "test": "lyrl2004_tokens_test_pt[0-3].dat"}
TOPICS_FILE = "rcv1-v2.topics.qrels"
SGML = ".sgm"
# Their time is proportional to the length of any record, also of a hostile one.
_ATTRIBUTE = re.compile(r'\b(\w+)="([^"]*)"')
_TOPIC = re.compile(r"<D>([^<]*)</D>")


def find_aapd(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find pairs of text and label files; without required labels, texts are enough."""
    splits = {}
    for split, texts in find_files(place, "text_", ("",)).items():
        labels = texts.with_name(texts.name.replace("text_", "label_"))
        if labels.is_file() or not options.require_labels:
            files = (texts, labels) if labels.is_file() else (texts,)
            splits[split] = Split(files, partial(_read_aapd, files, split, options))
    return splits


def _read_aapd(
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


def find_rcv1(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find the token files and their topics, each plain or compressed by gzip."""
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
        splits[split] = Split((*tokens, *topics), partial(_read_rcv1, tokens, topics, options))
    return splits


def _find_packed(place: Path, pattern: str) -> list[Path]:
    """Find files under their own names or with .gz added."""
    found = sorted(each for end in ("", ".gz") for each in place.glob(pattern + end))
    if twice := next((each for each in found if each.with_name(f"{each.name}.gz") in found), None):
        raise DataError(f"{place} holds both {twice.name} and {twice.name}.gz. Remove one.")
    return found


def _read_rcv1(
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


def find_reuters(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find those of reut2-000.sgm to reut2-021.sgm that exist, or read a single file.

    The ModApte split: train and test are the documents with that LEWISSPLIT and TOPICS="YES"; a
    document may still have no topics. Each split is read from all files.
    """
    found = [place] if place.is_file() else sorted(place.glob(f"reut2-*{SGML}"))
    files = tuple(path for path in found if path.is_file())
    return {
        split: Split(files, partial(_read_reuters, files, split.upper(), options))
        for split in (("train", "test") if files else ())
    }


def _read_reuters(
    files: tuple[Path, ...], split: str, options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream the documents of a split."""
    for path in files:
        records = numbered_records(path, b"<REUTERS", options.max_row_bytes)
        make = partial(_make_reuters, split, options.max_row_bytes)
        yield from read_rows(records, make, bad_rows, f"{path.name} line")


def _make_reuters(split: str, max_bytes: int, record: bytes, line: int) -> Example | None:
    """Read one record; return None if it belongs to another split."""
    content = record.decode("latin-1")
    opening, closed, _ = content.partition(">")
    attributes = dict(_ATTRIBUTE.findall(opening))
    if not closed or not {"TOPICS", "LEWISSPLIT", "NEWID"} <= attributes.keys():
        raise RowProblem("<REUTERS> must carry TOPICS, LEWISSPLIT and NEWID. Copy the file again.")
    if attributes["LEWISSPLIT"] != split or attributes["TOPICS"] != "YES":
        return None
    check_length(len(record), max_bytes)
    if "\0" in content or "</REUTERS>" not in content:
        raise RowProblem("holds a NUL byte, or has no </REUTERS>. Copy the file again.")
    text = _inside(content, "TEXT")  # one without these parts (TYPE="UNPROC") is taken whole
    parts = [_inside(text, tag) for tag in ("TITLE", "BODY") if f"<{tag}>" in text] or [text]
    topics = map(_unescape, _TOPIC.findall(_inside(content, "TOPICS")))
    return Example(
        attributes["NEWID"], "\n".join(map(_unescape, parts)), tuple(filter(None, topics))
    )


def _unescape(text: str) -> str:
    """Decode entities; the control characters around a text (&#2; and &#3;) become nothing."""
    try:
        return html.unescape(text).strip()
    except ValueError:
        problem = "a character is written as a number of too many digits. Correct it."
        raise RowProblem(problem) from None


def _inside(content: str, tag: str) -> str:
    opening = re.search(rf"<{tag}(?: [^<>]*)?>", content)
    end = -1 if opening is None else content.find(f"</{tag}>", opening.end())
    if opening is None or end < 0:
        raise RowProblem(f"the record has no complete <{tag}>. Copy the file again.")
    return content[opening.end() : end]


AAPD = Format(finder=find_aapd, fixed_names="text_train and label_train (AAPD)")
RCV1 = Format(finder=find_rcv1, fixed_names="lyrl2004_tokens_train.dat (RCV1-v2)")
REUTERS = Format((SGML,), finder=find_reuters, fixed_names="reut2-000.sgm (Reuters-21578)")
