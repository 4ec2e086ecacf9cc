"""Documents from standard input: JSON Lines, a table, or one text per line."""

import io

import pytest

from setrnn.data.example import Example
from setrnn.data.read import BadRows, ReadOptions
from setrnn.data.read.dataset import open_standard_input
from setrnn.errors import BadRowError, DataError


def read(content, reader=None, **options):
    stream = io.BytesIO(content)
    with open_standard_input(stream, ReadOptions(require_labels=False, **options), reader) as split:
        return list(split.read(BadRows()))


@pytest.mark.parametrize(
    ("content", "examples"),
    [
        (b"One, two\n\nThree\n", [Example("stdin-1", "One, two"), Example("stdin-3", "Three")]),
        (b"no end of line", [Example("stdin-1", "no end of line")]),
        (b'\n{"id": 7, "text": "One"}\n', [Example("7", "One")]),
        (b"id;text\n7;One, two\n", [Example("7", "One, two")]),
        (b"\xef\xbb\xbftext\nOne\n", [Example("stdin-1", "One")]),
        ("Schnee fällt\n".encode("utf-16"), [Example("stdin-1", "Schnee fällt")]),
    ],
)
def test_the_format_is_recognised(content, examples):
    assert read(content) == examples


def test_the_format_can_be_named():
    assert read(b"id,text,more\n7,One,\n", "csv") == [Example("7", "One")]
    with pytest.raises(DataError, match="stdin has no column 'text'"):
        read(b"id,description\n7,One\n", "csv")


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_nothing_is_refused(content):
    with pytest.raises(DataError, match="stdin holds no documents"):
        read(content)


def test_a_line_that_cannot_be_read_is_named():
    with pytest.raises(BadRowError, match=r"stdin line 2: is not UTF-8"):
        read(b"One\n\xff\n")
