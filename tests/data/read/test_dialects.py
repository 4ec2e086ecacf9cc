"""The delimiter of a table is recognised from its first lines."""

import csv
import io

import pytest

from setrnn.data.example import Example
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.data.read.delimited import DELIMITERS, find_delimiter

ROWS = [
    ["id", "text", "labels"],
    ["a", 'One, two; three | four\tand "five",\nsix', "x"],
    ["b", "plain", "y"],
]


def table(delimiter, rows=ROWS):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue()


def read(tmp_path, text, name="train.csv", **options):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    split = open_dataset(tmp_path / name, ReadOptions(**options)).require("train")
    return list(split.read(BadRows()))


@pytest.mark.parametrize("name", ["train.csv", "train.tsv"])
@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_every_delimiter_is_recognised(tmp_path, delimiter, name):
    examples = read(tmp_path, table(delimiter), name)
    assert examples == [Example("a", ROWS[1][1], ("x",)), Example("b", "plain", ("y",))]


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_columns_need_not_be_named_to_be_recognised(delimiter):
    rows = [["show", "description", "listed_in"], ["1", "a, b, c; d", "x"], ["2", "e | f", "y"]]
    assert find_delimiter(table(delimiter, rows).splitlines(), ["text", "labels"]) == delimiter


def test_one_column_needs_no_delimiter(tmp_path):
    text = "text\n" + "".join(f'"One; two, {n}"\n' for n in range(30))
    assert len(read(tmp_path, text, require_labels=False)) == 30


def test_a_row_that_continues_behind_the_first_lines_is_not_judged():
    lines = ["id;text;labels\n", "a;One;x\n", 'b;"Two, three\n', "and, four\n"]
    assert find_delimiter(lines, ["text", "labels"]) == ";"


def test_the_hint_of_a_spreadsheet_is_obeyed(tmp_path):
    examples = read(tmp_path, "sep=|\n" + table("|"))
    assert [example.id for example in examples] == ["a", "b"]
