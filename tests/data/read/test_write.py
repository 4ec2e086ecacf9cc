"""Writing documents: whole or not at all, and the same when read again."""

from __future__ import annotations

import gzip
import json
import os

import pytest

from setrnn.data.example import Example
from setrnn.data.read import BadRows, open_dataset, write, write_examples
from setrnn.errors import DataError

EXAMPLES = [
    Example("a", 'Älter\n"quoted"\u2028', ("x", "y"), ("f",)),
    Example("a", "", ()),
    Example("", "\U0001f600", (";",)),
]


def failing():
    yield EXAMPLES[0]
    raise DataError("the source broke")


@pytest.mark.parametrize("suffix", write.WRITERS)
def test_documents_are_the_same_when_read_again(tmp_path, suffix):
    path = tmp_path / f"news{suffix}"
    assert write_examples(iter(EXAMPLES), path) == 3
    assert list(open_dataset(path).require("train").read(BadRows())) == EXAMPLES
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", write.WRITERS)
def test_the_same_documents_give_the_same_bytes(tmp_path, suffix):
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path in paths:
        write_examples(EXAMPLES, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("suffix", write.WRITERS)
def test_a_failure_leaves_the_older_file_and_nothing_else(tmp_path, suffix):
    path = tmp_path / f"news{suffix}"
    write_examples(EXAMPLES, path)
    before = path.read_bytes()
    with pytest.raises(DataError, match="the source broke"):
        write_examples(failing(), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", write.WRITERS)
def test_half_a_character_is_refused_naming_the_document(tmp_path, suffix):
    broken = [*EXAMPLES, Example("broken", "\ud800", ())]
    with pytest.raises(DataError, match='Document "broken" holds half a character'):
        write_examples(broken, tmp_path / f"news{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_large_groups_are_written_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "_GROUP_ROWS", 2)
    path = tmp_path / "news.parquet"
    assert write_examples(EXAMPLES, path) == 3
    assert list(open_dataset(path).require("train").read(BadRows())) == EXAMPLES


def test_features_are_written_only_where_there_are_any(tmp_path):
    write_examples(EXAMPLES, tmp_path / "news.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "news.jsonl").open(encoding="utf-8")]
    assert [("features" in row) for row in rows] == [True, False, False]


def test_the_gzip_header_holds_no_time(tmp_path):
    write_examples(EXAMPLES, tmp_path / "news.jsonl.gz")
    content = (tmp_path / "news.jsonl.gz").read_bytes()
    assert content[4:8] == bytes(4)
    assert len(gzip.decompress(content).splitlines()) == 3


def test_an_unknown_suffix_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(DataError, match=r"no known suffix\. End its name in one of: \.jsonl"):
        write_examples(failing(), tmp_path / "news.csv")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"news\.jsonl cannot be written"):
        write_examples(EXAMPLES, tmp_path / "file" / "news.jsonl")
    (tmp_path / "news.jsonl").mkdir()
    with pytest.raises(DataError, match=r"news\.jsonl is a folder"):
        write_examples(EXAMPLES, tmp_path / "news.jsonl")
    assert {file.name for file in tmp_path.iterdir()} == {"file", "news.jsonl"}


def test_a_pipe_is_refused_and_a_link_is_followed(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataError, match="is a device or a pipe"):
        write_examples(EXAMPLES, tmp_path / "pipe.jsonl")
    assert (tmp_path / "pipe.jsonl").is_fifo()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    write_examples(EXAMPLES, tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert list(open_dataset(tmp_path / "real.jsonl").require("train").read(BadRows())) == EXAMPLES


def test_a_file_can_be_written_over_while_it_is_read(tmp_path):
    path = tmp_path / "news.jsonl"
    write_examples(EXAMPLES, path)
    write_examples(open_dataset(path).require("train").read(BadRows()), path)
    assert list(open_dataset(path).require("train").read(BadRows())) == EXAMPLES
