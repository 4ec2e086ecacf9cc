"""Read JSON Lines: one object per line, `{"id", "text", "labels", "features"}`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.read.printing import printable, shown
from setrnn.data.read.reader import (
    BadRows,
    ReadOptions,
    file_format,
    file_stem,
    numbered_lines,
)
from setrnn.data.read.row import (
    RowProblem,
    check_characters,
    decode,
    example_maker,
    read_rows,
    too_long,
)

_ADVICE = 'Write one object per line: {"text": "...", "labels": ["..."]}.'
_raw_decode = json.JSONDecoder().raw_decode


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file."""
    make = example_maker(options, file_stem(path), is_decoded=True)

    def make_from_line(line: bytes, number: int) -> Example | None:
        if len(line) > options.max_row_bytes:
            raise too_long(options.max_row_bytes)
        line = line.strip()
        if not line:
            return None
        example = make(parse_object(line), number)
        # Only an escape can bring in characters that the decoder would refuse.
        if b"\\u" in line:
            check_characters(example, options)
        return example

    lines = numbered_lines(path, options.max_row_bytes, options.encoding)
    return read_rows(lines, make_from_line, bad_rows, f"{printable(path.name)} line")


def parse_object(line: bytes, advice: str = _ADVICE) -> dict[str, Any]:
    """Parse a line that is one JSON object; `advice` says what to write instead."""
    text = decode(line)
    try:
        row, end = _raw_decode(text)
    except RecursionError:
        raise RowProblem(f"is nested too deeply. {advice}") from None
    except json.JSONDecodeError as error:
        raise RowProblem(f"is not JSON ({error.msg} at column {error.colno}). {advice}") from None
    except ValueError:
        raise RowProblem("holds a number of too many digits. Write it as a string.") from None
    if end != len(text):
        raise RowProblem(f"is not JSON (more text from column {end + 1} on). {advice}")
    if type(row) is not dict:
        raise RowProblem(f"must be a JSON object, got {shown(row)}. {advice}")
    return row


FORMAT = file_format(read, (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"))
