"""CSV and TSV: what is read, and what each broken row says."""

from __future__ import annotations

import gzip

import pytest

from setrnn.data.example import Example
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.errors import BadRowError, DataError

HEADER = b"id,text,labels\n"


def read(path, bad_rows=None, reader=None, **options):
    split = open_dataset(path, ReadOptions(**options), reader).require("train")
    return list(split.read(bad_rows or BadRows()))


def read_bytes(tmp_path, content, name="train.csv", **options):
    path = tmp_path / name
    path.write_bytes(content)
    return read(path, **options)


def test_rows_become_examples(tmp_path):
    content = (
        b'text,more,labels,id,features\n"one, two\nthree ""four""",1,x; y,a,f;g\n\nplain,,,,\n'
    )
    assert read_bytes(tmp_path, content) == [
        Example("a", 'one, two\nthree "four"', ("x", "y"), ("f", "g")),
        Example("train-2", "plain"),
    ]


@pytest.mark.parametrize(
    ("name", "delimiter"), [("train.tsv", b"\t"), ("train.csv.gz", b","), ("train.tsv.gz", b"\t")]
)
def test_the_suffix_names_the_delimiter(tmp_path, name, delimiter):
    content = (HEADER + b"a,one,x\n").replace(b",", delimiter)
    content = gzip.compress(content) if name.endswith(".gz") else content
    assert read_bytes(tmp_path, content, name) == [Example("a", "one", ("x",))]


@pytest.mark.parametrize("delimiter", [b"\t", b","])
def test_the_header_names_the_delimiter_where_the_suffix_does_not(tmp_path, delimiter):
    content = (HEADER + b"a,one,x\n").replace(b",", delimiter)
    path = tmp_path / "data.txt"
    path.write_bytes(content)
    assert read(path, reader="csv") == [Example("a", "one", ("x",))]


def test_byte_order_mark_and_carriage_returns_are_accepted(tmp_path):
    content = b"\xef\xbb\xbf" + HEADER.replace(b"\n", b"\r\n") + b"a,one,x\r\n"
    assert read_bytes(tmp_path, content) == [Example("a", "one", ("x",))]


def test_cells_may_be_longer_than_the_modules_first_limit(tmp_path):
    text = "w " * 200_000
    content = HEADER + b"a," + text.encode() + b",x\n"
    assert read_bytes(tmp_path, content)[0].text == text


@pytest.mark.parametrize("separator", ["|", " ", "::"])
def test_the_separator_of_labels_can_be_chosen(tmp_path, separator):
    content = HEADER + f"a,t,x{separator}y\n".encode()
    assert read_bytes(tmp_path, content, label_separator=separator)[0].labels == ("x", "y")


def test_empty_parts_of_a_cell_are_left_out(tmp_path):
    content = HEADER + b"a,t,x;;y;\nb,t,;\n"
    assert [each.labels for each in read_bytes(tmp_path, content)] == [("x", "y"), ()]


def test_labels_may_be_absent_where_they_are_not_asked_for(tmp_path):
    assert read_bytes(tmp_path, b"text\none\n", require_labels=False) == [Example("train-1", "one")]


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
def test_a_bad_row_says_where_what_and_the_way_out(tmp_path, case):
    row, problem, advice = BAD_ROWS[case]
    with pytest.raises(BadRowError) as caught:
        read_bytes(tmp_path, HEADER + b'a,"on\ne",x\n' + row)
    message = str(caught.value)
    assert message.startswith("train.csv line 4: ")
    assert problem in message
    assert advice in message
    assert len(message) <= 250


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_can_be_skipped(tmp_path, case):
    path = tmp_path / "train.csv"
    path.write_bytes(HEADER + b"a,one,x\n" + BAD_ROWS[case][0] + b"c,three,y\n")
    bad_rows = BadRows("skip")
    assert [example.id for example in read(path, bad_rows)] == ["a", "c"]
    assert bad_rows.n_skipped == 1


def test_a_bad_byte_in_a_cell_of_several_lines_costs_one_row(tmp_path):
    path = tmp_path / "train.csv"
    path.write_bytes(HEADER + b'a,"one\n\xff,two,three\nfour",x\nb,two,y\n')
    bad_rows = BadRows("skip")
    assert read(path, bad_rows) == [Example("b", "two", ("y",))]
    assert bad_rows.n_skipped == 1


@pytest.mark.parametrize("rest", [b"b,two,y\nc,three,z\n", b'b,"two",y\nc,three,z\n'])
def test_an_unclosed_quote_costs_only_its_row(tmp_path, rest):
    path = tmp_path / "train.csv"
    path.write_bytes(HEADER + b'a,"one,x\n' + rest)
    with pytest.raises(BadRowError, match=r"train\.csv line 2: .*quote"):
        read(path)
    bad_rows = BadRows("skip")
    assert [example.id for example in read(path, bad_rows)] == ["b", "c"]
    assert bad_rows.n_skipped == 1


def test_a_row_over_the_limit_is_refused_and_can_be_skipped(tmp_path):
    path = tmp_path / "train.csv"
    path.write_bytes(HEADER + b"a," + b"w" * 1000 + b",x\nb,two,y\n")
    with pytest.raises(BadRowError, match=r"line 2: is longer than 100 bytes\. Split"):
        read(path, max_row_bytes=100)
    assert [example.id for example in read(path, BadRows("skip"), max_row_bytes=100)] == ["b"]


def test_endless_unclosed_quotes_stop_the_reading(tmp_path):
    # Each line leaves a quote open, whether it begins inside one or not.
    content = HEADER + b'a","\n' * 2000
    path = tmp_path / "train.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match="too many quotes") as caught:
        read(path, BadRows("skip"), max_row_bytes=500)
    assert not isinstance(caught.value, BadRowError)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            b"id,texts,labels\n",
            "has no column 'text': it has texts, id, labels. Did you mean 'texts'?",
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


@pytest.mark.parametrize(
    ("option", "flag"), [("id_field", "--id-field"), ("features_field", "--features-field")]
)
def test_an_optional_column_must_be_there_once_it_is_named(tmp_path, option, flag):
    with pytest.raises(DataError, match=f"has no column 'mine'.*{flag}"):
        read_bytes(tmp_path, HEADER + b"a,one,x\n", **{option: "mine"})
