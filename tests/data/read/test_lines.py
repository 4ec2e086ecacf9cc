"""The lines of files: encodings, gzip, the limit, and what the system refuses."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from reading import read_bytes
from setrnn.data.example import Example
from setrnn.data.read import BadRows, open_dataset
from setrnn.errors import BadRowError, DataError

TABLE = "id,text,labels\r\na,café \u2013 naïve,x\r\nb,plain,y\r\n"
EXAMPLES = [Example("a", "café \u2013 naïve", ("x",)), Example("b", "plain", ("y",))]
GOOD = b'{"id": "a", "text": "one", "labels": ["x"]}\n'


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_names_the_encoding(tmp_path, encoding, name):
    content = TABLE.encode(encoding)
    content = gzip.compress(content) if name.endswith(".gz") else content
    assert read_bytes(tmp_path, content, name) == EXAMPLES


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-16-le", "cp1252", "utf-32", "utf-8"])
def test_the_encoding_can_be_named(tmp_path, encoding):
    assert read_bytes(tmp_path, TABLE.encode(encoding), encoding=encoding) == EXAMPLES


def test_a_named_encoding_leaves_utf_8_as_it_is(tmp_path):
    assert read_bytes(tmp_path, TABLE.encode(), encoding="cp1252") == EXAMPLES
    mixed = TABLE.encode() + "c,Müller,z\n".encode("latin-1")
    assert read_bytes(tmp_path, mixed, encoding="latin-1")[-1].text == "Müller"


def test_a_long_line_of_utf_16_is_a_bad_row(tmp_path):
    content = (TABLE + "c," + "é" * 500 + ",z\n").encode("utf-16")
    with pytest.raises(BadRowError, match="line 4: is longer than 100 bytes"):
        read_bytes(tmp_path, content, max_row_bytes=100)


def test_a_line_over_the_limit_is_never_held(tmp_path):
    content = GOOD + b'{"text": "' + b"x" * 50_000_000 + b'", "labels": []}\n' + GOOD
    bad_rows = BadRows("skip")
    tracemalloc.start()
    held = tracemalloc.get_traced_memory()[0]
    examples = read_bytes(tmp_path, content, "a.jsonl", bad_rows, max_row_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    assert len(examples) == 2
    assert peak < 8_000_000
    assert bad_rows.first == [
        "a.jsonl line 2: is longer than 1,000,000 bytes. Split the document, or raise "
        "max_row_bytes."
    ]


@pytest.mark.parametrize("policy", ["stop", "skip"])
@pytest.mark.parametrize(
    ("content", "problem", "advice"),
    [
        (gzip.compress(GOOD * 1000, mtime=0)[:-20], "is cut short", "Copy it again"),
        (GOOD, "is not a valid gzip file", "remove .gz"),
        (gzip.compress(GOOD, mtime=0) + b"rest", "is not a valid gzip file", "Copy it again"),
    ],
)
def test_broken_gzip_is_refused_under_either_policy(tmp_path, policy, content, problem, advice):
    with pytest.raises(DataError, match=rf"train\.jsonl\.gz {problem}.*{advice}") as caught:
        read_bytes(tmp_path, content, "train.jsonl.gz", BadRows(policy))
    assert not isinstance(caught.value, BadRowError)


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (PermissionError(13, "Permission denied"), "ermission denied"),
        (FileNotFoundError(2, "No such file"), "does not exist. Check the name"),
        (OSError(5, "Input/output error"), "cannot be read: Input/output error"),
    ],
)
def test_what_the_system_refuses_is_said_in_one_line(tmp_path, monkeypatch, raised, says):
    path = tmp_path / "train.jsonl"
    path.write_bytes(GOOD)
    split = open_dataset(path).require("train")

    def refuse(*_):
        raise raised

    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(DataError, match=says):
        list(split.read(BadRows()))
