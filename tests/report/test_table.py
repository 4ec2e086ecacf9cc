"""Forms keep what a table holds, whatever characters are in it."""

import csv
import io
import re

import pytest

from made_comparison import made_comparison
from setrnn.comparison.statistics import Entry
from setrnn.report.study import Study
from setrnn.report.table import Column, Estimate, Table, to_csv, to_markdown
from setrnn.report.tables import make_tables


@pytest.fixture(scope="module")
def study():
    return Study.of(*made_comparison(("br", "seq2seq-rnn", "set-rnn"), n_documents=60), 99)


@pytest.fixture(scope="module")
def tables(study):
    return {table.name: table for table in make_tables(study)}


def read_csv(table):
    return list(csv.DictReader(io.StringIO(to_csv(table))))


def test_csv_has_the_values_in_full_and_what_belongs_to_them(study, tables):
    rows = {row["system"]: row for row in read_csv(tables["systems"])}
    summary = study.draws.summary(Entry("set-rnn", "set"), "label_f1")
    row = rows["set-rnn"]
    assert float(row["label-F1"]) == summary.mean
    assert float(row["label-F1 std"]) == summary.std
    assert (float(row["label-F1 low"]), float(row["label-F1 high"])) == (summary.low, summary.high)
    assert rows["br"]["label-F1 std"] == ""
    assert {row["label-F1 mark"] for row in rows.values()} <= {"best", "tied", ""}


def test_every_table_reads_back_from_csv_with_its_rows_and_texts(tables):
    for table in tables.values():
        rows = read_csv(table)
        names = [next(iter(row.values())) for row in rows]
        if isinstance(table.rows[0], str):
            assert names == list(table.rows)
        for column, values in table.values.items():
            for row, value in zip(rows, values, strict=True):
                if isinstance(value, str) and column.header in row:
                    texts = (row[column.header], row.get(f"{column.header} text"))
                    assert value in texts


def test_markdown_has_a_line_per_row_and_escapes_pipes(tables):
    columns = [Column("system", str), Column("c|d", lambda row: "p(y | x)\nnext")]
    lines = to_markdown(Table("made", "Made", "", columns, ["a|b"])).splitlines()[-3:]
    assert lines == [r"| system | c\|d |", "| --- | --- |", r"| a\|b | p(y \| x) next |"]
    for table in tables.values():
        lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
        assert len(lines) == len(table.rows) + 2
        n_columns = len(table.values)
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {n_columns + 1}


def test_one_description_of_a_column_gives_all_forms():
    found = {"a": Estimate(0.5, std=0.01, low=0.4, high=0.6, p=0.03, tests=2, mark="tied")}
    column = Column("F1", {**found, "b": "failed", "c": 0.25}.get, direction="higher")
    empty = Column("nothing", lambda row: None)
    table = Table("made", "Made", "", [Column("system", str), column, empty], ["a", "b", "c"])
    assert [row[1].text for row in table.cells] == [".500 ± .010", "failed", ".250"]
    assert table.cells[0][1].notes == ("95% .400 to .600", "p = .030")
    assert "| a | *.500 ± .010* |" in to_markdown(table)
    header, first, second, third = to_csv(table).splitlines()
    assert header == "system,F1,F1 std,F1 low,F1 high,F1 p,F1 tests,F1 mark,F1 text"
    assert first == "a,0.5,0.01,0.4,0.6,0.03,2,tied,"
    assert (second, third) == ("b,,,,,,,,failed", "c,0.25,,,,,,,")


@pytest.mark.parametrize(
    ("direction", "order"), [("higher", ["b", "a", "c"]), ("lower", ["a", "b", "c"])]
)
def test_the_best_rows_come_first_and_those_without_a_number_last(direction, order):
    column = Column("x", {"a": 1.0, "b": 2.0, "c": "failed"}.get, direction=direction)
    table = Table("made", "Made", "", [Column("system", str), column], ["c", "a", "b"])
    assert table.sorted_by("x").rows == order
