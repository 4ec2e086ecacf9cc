"""CSV and TSV of any dialect: delimiters, cells of labels, and what each broken row says."""

from __future__ import annotations

import csv
import gzip
import io

import pytest

from reading import check_bad_row, read, read_bytes
from setrnn.data.example import Example
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.data.read.delimited import DELIMITERS, N_CELLS, Dialect, find_dialect, split_cell
from setrnn.errors import BadRowError, DataError

HEADER = b"id,text,labels\n"


def test_rows_become_examples(tmp_path):
    content = (
        b'text,more,labels,id,features\n"one, two\nthree ""four""",1,x; y,a,f;g\n\nplain,,[],,\n'
    )
    assert read_bytes(tmp_path, content) == [
        Example("a", 'one, two\nthree "four"', ("x", "y"), ("f", "g")),
        Example("train-2", "plain"),
    ]


def test_cells_may_be_longer_than_the_modules_first_limit(tmp_path):
    text = "w " * 200_000
    content = HEADER + b"a," + text.encode() + b",x\n"
    assert read_bytes(tmp_path, content)[0].text == text


@pytest.mark.parametrize("separator", ["|", " ", "::"])
def test_the_separator_of_labels_can_be_chosen(tmp_path, separator):
    content = HEADER + f"a,t,x{separator}y\n".encode()
    assert read_bytes(tmp_path, content, label_separator=separator)[0].labels == ("x", "y")


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (b"id,text\na,b\n", None, Dialect()),
        (b"id;text\na;b\n", None, Dialect(";", mark=True)),
        (b"id;text\na;b\n", "plain", Dialect()),
        (b"id,text\na,b\n", "excel", Dialect(mark=True)),
        ("id,text\na,b\n".encode("utf-8-sig"), None, Dialect(mark=True)),
        ("id\ttext\na\tb\n".encode("utf-16"), None, Dialect("\t", mark=True)),
        (b"sep=|\nid|text\na|b\n", None, Dialect("|", mark=True)),
    ],
)
def test_what_is_written_is_for_the_spreadsheet_of_the_input(tmp_path, content, name, expected):
    file = tmp_path / "in.csv"
    file.write_bytes(content)
    assert find_dialect([file], ReadOptions(), name) == expected
    cp1252 = ReadOptions(encoding="cp1252", label_separator="none")
    assert find_dialect([file], cp1252).mark
    assert find_dialect([file], cp1252).separator == ";", "cells of one label have none"
    assert find_dialect([], ReadOptions()) == Dialect()


BAD_ROWS = {
    "one cell": (b"b\n", "has 1 cell, the header has 3", "in quotes"),
    "too few cells": (b"b,two\n", "has 2 cells, the header has 3", "in quotes"),
    "too many cells": (b"b,two,x,y\n", "has 4 cells, the header has 3", "in quotes"),
    "text behind a quote": (b'b,"two"x,y\n', "cannot be split into cells", "Double the quotes"),
    "carriage return": (b"b,two\rc,x\n", "carriage return", "line ends"),
    "not UTF-8": (b"b,\xff,x\n", "is not UTF-8 (byte 0xff at column 3)", "--encoding cp1252"),
    "NUL byte": (b"b,t\0wo,x\n", "holds a NUL byte", "Remove it"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_says_where_what_and_the_way_out_or_is_skipped(tmp_path, case):
    row, *says = BAD_ROWS[case]
    content = HEADER + b'a,"on\ne",x\n' + row + b"c,three,y\n"
    found = check_bad_row(tmp_path, content, "train.csv", "train.csv line 4", *says)
    assert [example.id for example in found] == ["a", "c"]


def test_a_bad_byte_in_a_cell_of_several_lines_costs_one_row(tmp_path):
    path = tmp_path / "train.csv"
    path.write_bytes(HEADER + b'a,"one\n\xff,two,three\nfour",x\nb,two,y\n')
    bad_rows = BadRows("skip")
    assert read(path, bad_rows) == [Example("b", "two", ("y",))]
    assert bad_rows.n_skipped == 1


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (b'a,"one,x\nb,two,y\n', "opens a quote"),
        (b'a,"one,x\nb,"two",y\n', "cannot be split"),
        (b'a,"' + b"one,x\n" * 200, "is longer than 500 bytes"),
    ],
)
@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_a_bad_row_of_several_lines_is_refused_under_either_policy(tmp_path, row, problem, policy):
    path = tmp_path / "train.csv"
    path.write_bytes(HEADER + row + b"c,three,z\n")
    with pytest.raises(
        DataError, match=rf"train\.csv line 2: a row of \d+ lines {problem}"
    ) as caught:
        read(path, BadRows(policy), max_row_bytes=500)
    assert not isinstance(caught.value, BadRowError)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            b"id,texts,labels\n",
            "has no column 'text': it has id, texts, labels. Did you mean 'texts'?",
        ),
        (b"id,text,tags\n", "has no column 'labels'"),
        (b"text,labels,text\n", "has two columns 'text'. Rename or remove one"),
        (b'"id,text\n', "line 1: the header opens a quote"),
        (b"\xffid\n", "line 1: the header is not UTF-8"),
        (b"\xff\xfei\0d\0\n", "cannot be decoded"),
    ],
)
@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_a_wrong_header_is_refused_under_either_policy(tmp_path, content, says, policy):
    path = tmp_path / "train.csv"
    path.write_bytes(content + b"a,one,x\n" * (b'"' not in content))
    with pytest.raises(DataError) as caught:
        read(path, BadRows(policy))
    assert not isinstance(caught.value, BadRowError)
    assert "train.csv" in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize("kind", ["id", "features"])
def test_an_optional_column_must_be_there_once_it_is_named(tmp_path, kind):
    with pytest.raises(DataError, match=f"has no column 'mine'.*--{kind}-field"):
        read_bytes(tmp_path, HEADER + b"a,one,x\n", **{f"{kind}_field": "mine"})


ROWS = [
    ["id", "text", "labels"],
    ["a", 'One, two; three | four\tand "five",\nsix', "x"],
    ["b", "plain", "y"],
]


def table(delimiter, rows=ROWS):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("hint", ["", "sep={}\n"])
@pytest.mark.parametrize("name", ["train.csv", "train.tsv", "train.csv.gz"])
@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_every_delimiter_is_recognised(tmp_path, delimiter, name, hint):
    content = (hint.format(delimiter) + table(delimiter)).encode()
    examples = read_bytes(tmp_path, gzip.compress(content) if "gz" in name else content, name)
    assert examples == [Example("a", ROWS[1][1], ("x",)), Example("b", "plain", ("y",))]


def read_labels(tmp_path, cells, on_bad_row="stop", **options):
    rows = "".join(f'{number},some text,"{cell}"\n' for number, cell in enumerate(cells))
    found = read_bytes(tmp_path, HEADER + rows.encode(), bad_rows=BadRows(on_bad_row), **options)
    return [example.labels for example in found]


GENRES = ["Dramas, Comedies", "Dramas", "", "Comedies, Sports", "Sports"]


@pytest.mark.parametrize("held", [", ", ",", "|", " | "])
@pytest.mark.parametrize("on_bad_row", ["stop", "skip"])
def test_another_separator_in_the_cells_stops_with_it(tmp_path, held, on_bad_row):
    cells = [cell.replace(", ", held) for cell in GENRES]
    with pytest.raises(DataError) as caught:
        read_labels(tmp_path, cells, on_bad_row)
    message = str(caught.value)
    assert "4 labels, one per document" in message
    meant = held.strip()
    assert f"Did you mean --label-separator '{meant}'?" in message
    labels = read_labels(tmp_path, cells, label_separator=meant, unlabelled_rows="empty")
    assert labels[0] == ("Dramas", "Comedies")


def test_a_chosen_separator_is_checked_too(tmp_path):
    with pytest.raises(DataError, match="--label-separator ','"):
        read_labels(tmp_path, GENRES, label_separator="|")
    with pytest.raises(DataError, match="--label-separator ';'"):
        read_labels(tmp_path, ["a;b", "a", "b"], label_separator=",")


def test_one_label_per_cell_can_be_asked_for(tmp_path):
    assert (
        read_labels(tmp_path, ["Home, Garden"] * 3, label_separator="none")
        == [("Home, Garden",)] * 3
    )


def test_a_separator_that_occurs_somewhere_is_the_right_one(tmp_path):
    cells = ["Home, Garden", "Books, Music", "Home, Garden;Toys"]
    assert read_labels(tmp_path, cells)[2] == ("Home, Garden", "Toys")


def test_a_large_file_stops_early(tmp_path):
    path = tmp_path / "train.csv"
    rows = '1,t,"a, b"\n' * (2 * N_CELLS)
    path.write_text(f"id,text,labels\n{rows}")
    with pytest.raises(DataError, match="in the first 1,000 documents"):
        next(open_dataset(path).require("train").read(BadRows()))


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("['Drama', 'Sci-Fi']", ["Drama", "Sci-Fi"]),
        ('["Drama"]', ["Drama"]),
        ("[]", []),
        ("[draft]", ["[draft]"]),
        ("[1, 2]", ["[1, 2]"]),
        ("[" * 9000 + "]" * 9000, ["[" * 9000 + "]" * 9000]),
        ("<c++><.net> ", ["c++", ".net"]),
        ("<one>", ["one"]),
        ("a<b><c>", ["a<b><c>"]),
        ("<><b>", ["<><b>"]),
    ],
)
def test_a_list_in_a_cell_is_a_list(cell, labels):
    assert split_cell(cell, ";") == labels
