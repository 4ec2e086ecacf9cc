"""Documents and tables of any columns: written whole or not at all, the same when read again."""

from __future__ import annotations

import csv
import datetime
import io
import os

import pyarrow.parquet as pq
import pytest

from reading import read
from setrnn.data.example import Example
from setrnn.data.read import write, write_examples
from setrnn.data.read.delimited import Dialect
from setrnn.data.read.write import neutralise, write_table
from setrnn.errors import DataError

EXAMPLES = [
    Example("a", 'Älter\n"quoted"\u2028', ("x", "y"), ("f",)),
    Example("a", "", ()),
    Example("", "\U0001f600", (";",)),
]
ROWS = [
    {"id": "1", "n": 1, "labels": ["a", "b"], "p": [0.5, 0.25], "ok": True, "mixed": 1},
    {"id": "2", "n": None, "labels": [], "p": [], "ok": False, "mixed": "x", "new": 'é\n"q"'},
]


def cells(file):
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("suffix", write.WRITERS)
def test_documents_are_the_same_when_read_again(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(write, "_GROUP_ROWS", 2)  # several groups of Parquet
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        assert write_examples(iter(EXAMPLES), path) == 3
        assert read(path) == EXAMPLES
    assert sorted(tmp_path.iterdir()) == paths
    assert paths[0].read_bytes() == paths[1].read_bytes()  # a header of gzip has no time
    write_examples(read(path), path)  # over the file that is read
    assert read(path) == EXAMPLES


@pytest.mark.parametrize("name", [*(f"a{suffix}" for suffix in write.WRITERS), "a.csv"])
def test_a_failure_leaves_the_older_file_and_nothing_else(tmp_path, name):
    def failing():
        yield ROWS[0] if name == "a.csv" else EXAMPLES[0]
        raise DataError("the source broke")

    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(DataError, match="the source broke"):
        (write_table if name == "a.csv" else write_examples)(failing(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", write.WRITERS)
def test_half_a_character_is_refused(tmp_path, suffix):
    broken = [*EXAMPLES, Example("broken", "\ud800", ())]
    with pytest.raises(DataError, match="holds half a character"):
        write_examples(broken, tmp_path / f"news{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("news.csv", r"no known suffix\. End its name in one of: \.jsonl"),
        ("file/news.jsonl", r"news\.jsonl cannot be written"),
        ("folder.jsonl", r"folder\.jsonl is a folder"),
        ("pipe.jsonl", "is a device or a pipe"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused(tmp_path, name, says):
    (tmp_path / "file").touch()
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError, match=says):
        write_examples(EXAMPLES, tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before


def test_csv_joins_lists_and_leaves_nothing_empty(tmp_path):
    assert write_table(ROWS, tmp_path / "out.csv", Dialect(separator="|")) == 2
    first, second = cells(tmp_path / "out.csv")
    assert first == {
        "id": "1",
        "n": "1",
        "labels": "a|b",
        "p": "0.5|0.25",
        "ok": "true",
        "mixed": "1",
        "new": "",
    }
    assert second["labels"] == second["n"] == ""
    assert second["new"] == 'é\n"q"'


def test_parquet_keeps_types(tmp_path):
    write_table(ROWS, tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.to_pylist() == [
        {**ROWS[0], "mixed": "1", "new": None},
        {**ROWS[1], "mixed": "x"},
    ]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_values_that_are_not_plain_become_text(tmp_path, suffix):
    row = {"day": datetime.date(2024, 5, 1), "nested": {"a": [1]}, "nan": float("nan"), "e": []}
    row["large"] = 2**70
    file = tmp_path / f"out{suffix}"
    write_table([row, {"nested": ["a", "b"]}], file)
    found, other = cells(file) if suffix == ".csv" else pq.read_table(file).to_pylist()
    assert found["day"] == "2024-05-01"
    assert found["nested"] == '{"a": [1]}'
    assert other["nested"] == ("a;b" if suffix == ".csv" else '["a", "b"]')
    assert not found["nan"]
    assert found["large"] == str(2**70)


FORMULAS = [
    *("=1+1", "+1+1", "-1+1", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1", "\r=1", "\n=1"),
    *("-", "--1", "\uff1d1", "-5 apples", "+49 30 123"),
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_are_neutralised(tmp_path, formula):
    write_table([{formula: formula, "labels": [formula, "a"], "n": -5}], tmp_path / "out.csv")
    (row,) = cells(tmp_path / "out.csv")
    safe = f"'{formula[:1]}'{formula[1:]}" if formula[0] in "\t\r\n" else f"'{formula}"
    assert row[safe] == safe
    assert row["labels"] == f"{safe};a"
    assert row["n"] == "-5"
    assert [each for each in ("-5.25", "+3", "-1e-5", "a=b", "") if neutralise(each) != each] == []


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("separator", [";", "\t", "\r\n", ';"', '\n""'])
def test_formulas_inside_a_cell_are_neutralised(separator, formula):
    """In a spreadsheet that separates cells by semicolons or tabs, and ends rows at a new line."""
    text = f"text{separator}{formula}"
    safe = neutralise(text)
    assert safe.replace("'", "") == text.replace("'", "")
    for start in ("", "1,", "2;"):
        for row in csv.reader(io.StringIO(f"{start}{_as_cell(safe)}", newline=""), delimiter=";"):
            for cell in (part for each in row for part in each.split("\t")):
                assert neutralise(cell) == cell
    kept = "a;b;-5.25;-1e-5\tc-d\n+3;; =1"
    assert neutralise(kept) == kept


def _as_cell(text):
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow([text])
    return stream.getvalue()
