"""Tables of any columns, as CSV and Parquet."""

import csv
import datetime

import pyarrow.parquet as pq
import pytest

from setrnn.data.read.write import neutralise, write_table
from setrnn.errors import DataError

ROWS = [
    {"id": "1", "n": 1, "labels": ["a", "b"], "p": [0.5, 0.25], "ok": True, "mixed": 1},
    {"id": "2", "n": None, "labels": [], "p": [], "ok": False, "mixed": "x", "new": 'é\n"q"'},
]


def cells(file):
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_csv_joins_lists_and_leaves_nothing_empty(tmp_path):
    assert write_table(ROWS, tmp_path / "out.csv", "|") == 2
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
    write_table([row], file)
    (found,) = cells(file) if suffix == ".csv" else pq.read_table(file).to_pylist()
    assert found["day"] == "2024-05-01"
    assert found["nested"] == '{"a": [1]}'
    assert not found["nan"]
    assert found["large"] == str(2**70)


FORMULAS = [
    *("=1+1", "+1+1", "-1+1", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1", "\r=1", "\n=1"),
    *("-", "--1", "\uff1d1", "-5 apples", "+49 30 123"),
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_are_neutralised(tmp_path, formula):
    write_table([{formula: formula, "labels": [formula, "a"]}], tmp_path / "out.csv")
    (row,) = cells(tmp_path / "out.csv")
    assert row[f"'{formula}"] == f"'{formula}"
    assert row["labels"] == f"'{formula};a"


@pytest.mark.parametrize("cell", ["-5", "-5.25", "+3", "-1e-5", "5-3", "a=b", "", "'=1", "é"])
def test_other_cells_are_left_as_they_are(cell):
    assert neutralise(cell) == cell


def test_a_failure_leaves_the_old_file(tmp_path):
    file = tmp_path / "out.csv"
    file.write_text("old")

    def rows():
        yield {"a": 1}
        raise DataError("stop")

    with pytest.raises(DataError):
        write_table(rows(), file)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
