"""Ranges of rows: together they are the file, whatever its format."""

import csv
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setrnn.data.formats import BadRows, ReadOptions, open_dataset
from setrnn.data.formats.ranges import cut_file, cut_stream, is_streamed, read_file, read_stream
from setrnn.errors import DataError

OPTIONS = ReadOptions(require_labels=False)
TEXTS = ["one", "two\nlines, and a comma", "drei ä", "", "five", "six", "seven"]
LINES = [json.dumps({"text": text, "n": n}) for n, text in enumerate(TEXTS)]


def write_jsonl(path, end="\n"):
    path.write_text("\n".join(LINES) + end, encoding="utf-8")


def write_blank(path):
    path.write_text("\n\n".join(LINES) + "\n\n", encoding="utf-8")


def write_gzip(path):
    path.write_bytes(gzip.compress("\n".join(LINES).encode()))


def write_utf16(path):
    path.write_text("\n".join(LINES), encoding="utf-16")


def write_csv(path):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text"], *([each] for each in TEXTS)])


def write_parquet(path):
    pq.write_table(pa.table({"text": TEXTS}), path, row_group_size=3)


WRITERS = {
    "a.jsonl": write_jsonl,
    "open.jsonl": lambda path: write_jsonl(path, end=""),
    "blank.jsonl": write_blank,
    "marked.jsonl": write_utf16,
    "a.jsonl.gz": write_gzip,
    "a.csv": write_csv,
    "a.parquet": write_parquet,
}


def read_in_ranges(path: Path, n_rows: int, bad_rows: BadRows):
    with path.open("rb") as stream:
        if not is_streamed(path.name, stream):
            ranges = cut_file(path, OPTIONS, None, n_rows)
            return [[*read_file(path, each, OPTIONS, None, bad_rows)] for each in ranges]
        ranges = cut_stream(path.name, stream, n_rows)
        return [[*read_stream(path.name, stream, each, OPTIONS, bad_rows)] for each in ranges]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("n_rows", [1, 2, 3, 100])
def test_the_ranges_are_the_file(name, n_rows, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    (split,) = open_dataset(path, OPTIONS).splits.values()
    found = read_in_ranges(path, n_rows, BadRows())
    assert [each for part in found for each in part] == list(split.read(BadRows()))
    assert all(len(part) <= n_rows for part in found)


@pytest.mark.parametrize("name", ["bad.jsonl", "bad.jsonl.gz"])
def test_each_bad_row_is_in_one_range(name, tmp_path):
    content = "\n".join([LINES[0], "{", LINES[1], LINES[2], "[]", LINES[3], "{}"]).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    bad_rows = BadRows("skip")
    found = read_in_ranges(path, 2, bad_rows)
    assert sum(map(len, found)) == 4
    assert bad_rows.n_skipped == 3
    assert bad_rows.first[0].startswith(f"{name} line 2")


def test_lines_that_were_changed_are_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    write_jsonl(path)
    with path.open("rb") as stream:
        first, second = cut_stream(path.name, stream, 4)
    path.write_text(path.read_text(encoding="utf-8").replace("six", "SIX"), encoding="utf-8")
    with path.open("rb") as stream:
        assert len([*read_stream(path.name, stream, first, OPTIONS, BadRows())]) == 4
        with pytest.raises(DataError, match="changed"):
            list(read_stream(path.name, stream, second, OPTIONS, BadRows()))
