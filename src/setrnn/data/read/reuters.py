"""Read Reuters-21578 (SGML) in the ModApte split.

Train and test are the documents with that LEWISSPLIT and TOPICS="YES"; a document may still have
no topics. Each split is read from all files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from setrnn.data.example import Example
from setrnn.data.read.lines import RowProblem, check_length, numbered_records
from setrnn.data.read.reader import BadRows, Format, ReadOptions, Split
from setrnn.data.read.row import read_rows

SUFFIX = ".sgm"

# Each takes time in proportion to the record, whatever the record holds.
_ATTRIBUTE = re.compile(r'\b(\w+)="([^"]*)"')
_TOPIC = re.compile(r"<D>([^<]*)</D>")


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find those of reut2-000.sgm to reut2-021.sgm that exist, or read a single file."""
    found = [place] if place.name.endswith(SUFFIX) else place.glob(f"reut2-*{SUFFIX}")
    files = tuple(sorted(path for path in found if path.is_file()))
    splits = ("train", "test") if files else ()
    return {split: Split(files, partial(_read, files, split.upper(), options)) for split in splits}


def _read(
    files: tuple[Path, ...], split: str, options: ReadOptions, bad_rows: BadRows
) -> Iterator[Example]:
    """Stream the documents of a split."""
    for path in files:
        records = numbered_records(path, b"<REUTERS", options.max_row_bytes)
        make = partial(_document, split, options.max_row_bytes)
        yield from read_rows(records, make, bad_rows, f"{path.name} line")


def _document(split: str, max_bytes: int, record: bytes, line: int) -> Example | None:
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


FORMAT = Format((SUFFIX,), finder=find, fixed_names="reut2-000.sgm (Reuters-21578)")
