"""Forms keep what a table holds, whatever characters are in it."""

import csv
import io
import re

import pytest

from made_comparison import made_comparison
from setrnn.comparison.statistics import Entry, bootstrap
from setrnn.report.table import Cell, Row, Table, to_csv, to_markdown
from setrnn.report.tables import joint_systems_table, make_tables


@pytest.fixture(scope="module")
def made():
    comparison, records = made_comparison(("br", "seq2seq-rnn", "set-rnn"), n_documents=60)
    statistics = bootstrap(comparison, records, draws=99)
    tables = make_tables(comparison, records, statistics)
    joint = joint_systems_table([(comparison, records, statistics)] * 2)
    return comparison, records, statistics, [*tables, joint]


def read_csv(text):
    return list(csv.reader(io.StringIO(text)))


def test_csv_has_the_values_in_full_and_what_belongs_to_them(made):
    _, _, statistics, tables = made
    header, *rows = read_csv(to_csv(tables[1]))
    by_system = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    summary = statistics.summary(Entry("set-rnn", "set"), "label_f1")
    row = by_system["set-rnn"]
    assert float(row["label-F1"]) == summary.mean
    assert float(row["label-F1 std"]) == summary.std
    assert (float(row["label-F1 low"]), float(row["label-F1 high"])) == (summary.low, summary.high)
    assert by_system["br"]["label-F1 std"] == ""
    assert {row["label-F1 mark"] for row in by_system.values()} <= {"best", "tied", ""}


def test_every_table_reads_back_from_csv_with_its_rows_and_texts(made):
    for table in made[-1]:
        header, *rows = read_csv(to_csv(table))
        assert [row[0] for row in rows] == [row.name for row in table.rows]
        assert all(len(row) == len(header) for row in rows)
    texts = [row[1] for row in read_csv(to_csv(made[-1][0]))[1:]]
    assert texts == [row.cells[0].text for row in made[-1][0].rows]


def test_markdown_has_a_line_per_row_and_escapes_pipes(made):
    row = Row("a|b", [Cell("p(y | x)\nnext")])
    lines = to_markdown(Table("made", "Made", "", ["c|d"], [row])).splitlines()[-3:]
    assert lines == [r"| system | c\|d |", "| --- | --- |", r"| a\|b | p(y \| x) next |"]
    for table in made[-1]:
        lines = [line for line in to_markdown(table).splitlines() if line.startswith("|")]
        assert len(lines) == len(table.rows) + 2
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.headers) + 2}
