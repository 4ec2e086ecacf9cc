"""Parquet: what is read, and what is refused."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reading import read
from setrnn.data.example import Example
from setrnn.data.read import BadRows, parquet
from setrnn.errors import BadRowError, DataError


def write(tmp_path, columns):
    path = tmp_path / "train.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd")
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


def test_a_text_over_the_limit_is_a_bad_row(tmp_path):
    path = write(tmp_path, {"text": ["word " * 30, *["one"] * 9], "labels": [["x"]] * 10})
    with pytest.raises(BadRowError, match=r"row 1: is longer than 100 bytes"):
        read(path, max_row_bytes=100)
    assert len(read(path, BadRows("skip"), max_row_bytes=100)) == 9


@pytest.mark.parametrize(
    "columns",
    [
        {"text": ["word " * 4_000_000], "labels": [["x"]]},
        {"text": ["one"], "labels": pa.array([["x"] * 20_000_000])},
        {"text": ["one"], "labels": [["word " * 4_000_000]]},
    ],
)
def test_rows_that_are_long_only_in_memory_are_not_read(tmp_path, monkeypatch, columns):
    path = write(tmp_path, columns)
    assert path.stat().st_size < 10_000
    monkeypatch.delattr(pq.ParquetFile, "iter_batches")
    bad_rows = BadRows("skip")
    with pytest.raises(DataError, match=r"row 1: is longer than 10,000,000 bytes"):
        read(path, bad_rows)
    assert bad_rows.n_skipped == 1


def write_groups(tmp_path, *groups):
    path = tmp_path / "train.parquet"
    schema = pa.schema({"text": pa.string(), "labels": pa.list_(pa.string())})
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        for texts in groups:
            file.write_table(pa.table({"text": texts, "labels": [["x"]] * len(texts)}, schema))
    return path


def test_a_group_of_rows_with_a_long_one_is_skipped_and_named(tmp_path):
    path = write_groups(tmp_path, ["a", "b"], ["c", "word " * 10_000_000, "d"], ["e"])
    bad_rows = BadRows("skip")
    assert [each.text for each in read(path, bad_rows)] == ["a", "b", "e"]
    assert bad_rows.n_skipped == 3
    message = r"^train\.parquet row 3: is one of 3 rows \(3 to 5\) that take 50,0.* some are longer"
    with pytest.raises(BadRowError, match=message):
        read(path)


def test_a_long_row_among_many_is_not_read_into_memory(tmp_path, monkeypatch):
    """The rows could hold as many bytes if all were long, but not in so small a file."""
    path = write_groups(tmp_path, ["word " * 60_000_000, *["one"] * 99])
    assert path.stat().st_size < 50_000
    monkeypatch.delattr(pq.ParquetFile, "iter_batches")
    with pytest.raises(BadRowError, match=r"one of 100 rows \(1 to 100\)"):
        read(path)


def test_rows_that_share_a_long_text_are_read_in_small_batches(tmp_path, monkeypatch):
    sizes = []

    def watch(self, *args, **kwargs):
        for batch in iter_batches(self, *args, **kwargs):
            sizes.append(batch.nbytes)
            yield batch

    iter_batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watch)
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 1_000_000)
    path = write(tmp_path, {"text": ["word " * 20_000] * 100, "labels": [["x"]] * 100})
    assert len(read(path)) == 100
    assert max(sizes) <= 1_000_000


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
