"""Read JSON Lines: one object per line, `{"id", "text", "labels", "features"}`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setrnn.data.example import Example
from setrnn.data.read.lines import RowProblem, decode, file_stem, numbered_lines
from setrnn.data.read.reader import BadRows, Format, ReadOptions
from setrnn.data.read.rows import example_maker, read_rows
from setrnn.errors import shown

_ADVICE = 'Write one object per line: {"text": "...", "labels": ["..."]}.'


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Stream the documents of one file."""
    make = example_maker(options, file_stem(path))

    def make_from_line(line: bytes, number: int) -> Example | None:
        row = parse_object(line, options.max_row_bytes)
        return None if row is None else make(row, number)

    lines = numbered_lines(path, options.max_row_bytes, options.encoding)
    return read_rows(lines, make_from_line, bad_rows, f"{path.name} line")


def parse_object(line: bytes, max_bytes: int, advice: str = _ADVICE) -> dict[str, Any] | None:
    """Parse a line that is one JSON object; `advice` says what to write instead.

    An empty line is None.
    """
    text = decode(line, max_bytes).strip()
    if not text:
        return None
    try:
        row = json.loads(text)
    except RecursionError:
        raise RowProblem(f"is nested too deeply. {advice}") from None
    except json.JSONDecodeError as error:
        raise RowProblem(f"is not JSON ({error.msg} at column {error.colno}). {advice}") from None
    except ValueError:
        raise RowProblem("holds a number of too many digits. Write it as a string.") from None
    if type(row) is not dict:
        raise RowProblem(f"must be a JSON object, got {shown(row)}. {advice}")
    return row


FORMAT = Format((".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"), read)
