"""Parquet: what is read, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reading import read
from setrnn.data.example import Example
from setrnn.data.read import BadRows
from setrnn.errors import BadRowError, DataError


def write(tmp_path, columns):
    path = tmp_path / "train.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_rows_become_examples(tmp_path):
    columns = {
        "id": [1, 2],
        "text": ["one", "two"],
        "labels": [["x", "y"], []],
        "features": [None, ["f"]],
        "more": [0.5, 0.5],
    }
    assert read(write(tmp_path, columns)) == [
        Example("1", "one", ("x", "y")),
        Example("2", "two", (), ("f",)),
    ]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_other_kinds_of_strings_are_strings(tmp_path, kind):
    column = pa.array(["one", "two"]).cast(kind)
    path = write(tmp_path, {"text": column, "labels": [["x"], ["y"]]})
    assert [example.text for example in read(path)] == ["one", "two"]


def test_a_bad_row_says_where_and_what(tmp_path):
    path = write(tmp_path, {"text": ["one", None], "labels": [["x"], ["x"]]})
    with pytest.raises(BadRowError, match=r"^train\.parquet row 2: 'text' must be a string"):
        read(path)
    assert len(read(path, BadRows("skip"))) == 1


def test_a_missing_column_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"has no column 'labels'.*--labels-field"):
        read(write(tmp_path, {"text": ["t"]}), BadRows("skip"))


@pytest.mark.parametrize("content", [b"", b"PAR1", b"{}", b"PAR1" + b"\0" * 100 + b"PAR1", None])
def test_a_broken_file_is_refused(tmp_path, content):
    path = write(tmp_path, {"text": ["t"], "labels": [["x"]], "another": [1]})
    if content is None:  # the name of a column is not UTF-8
        content = path.read_bytes().replace(b"another", b"an\xffther")
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"train\.parquet .*Parquet"):
        read(path)
