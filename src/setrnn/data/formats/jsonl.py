"""Read JSON Lines: one object per line, `{"id", "text", "labels", "features"}`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.formats.reader import (
    BadRows,
    Format,
    ReadOptions,
    Split,
    file_splits,
    file_stem,
    numbered_lines,
)
from setrnn.data.formats.row import (
    RowProblem,
    bad_line,
    check_characters,
    decode,
    example_maker,
    nul_byte,
    shown,
    too_long,
)

SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")

_ADVICE = 'Write one object per line: {"text": "...", "labels": ["..."]}.'
_raw_decode = json.JSONDecoder().raw_decode


def find(place: Path, options: ReadOptions) -> dict[str, Split]:
    """Find JSON Lines files."""
    return file_splits(place, options, SUFFIXES, read)


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file."""
    make = example_maker(options, file_stem(path))
    for number, line in numbered_lines(path, options.max_row_bytes):
        try:
            if len(line) > options.max_row_bytes:
                raise too_long(options.max_row_bytes)
            line = line.strip()
            if not line:
                continue
            example = make(parse_object(line), number)
            # Only an escape can bring in characters that the decoder would refuse.
            if b"\\u" in line:
                check_characters(example, options)
        except RowProblem as problem:
            bad_rows.add(bad_line(path, number, problem))
            continue
        yield example


def parse_object(line: bytes, advice: str = _ADVICE) -> dict[str, Any]:
    """Parse a line that is one JSON object; `advice` says what to write instead."""
    text = decode(line)
    try:
        row, end = _raw_decode(text)
    except RecursionError:
        raise RowProblem(f"is nested too deeply. {advice}") from None
    except json.JSONDecodeError as error:
        if b"\0" in line:
            raise nul_byte() from None
        raise RowProblem(f"is not JSON ({error.msg} at column {error.colno}). {advice}") from None
    except ValueError:
        raise RowProblem("holds a number of too many digits. Write it as a string.") from None
    if end != len(text):
        raise RowProblem(f"is not JSON (more text from column {end + 1} on). {advice}")
    if type(row) is not dict:
        raise RowProblem(f"must be a JSON object, got {shown(row)}. {advice}")
    return row


FORMAT = Format(find, SUFFIXES, has_fields=True)
