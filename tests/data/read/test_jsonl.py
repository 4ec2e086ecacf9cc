"""JSON Lines: what is read, and what each broken row says."""

from __future__ import annotations

import json
from functools import partial

import pytest

import reading
from reading import check_bad_row, read
from setrnn.data.example import Example, KnownLabels
from setrnn.data.read import BadRows
from setrnn.errors import BadRowError, DataError

read_bytes = partial(reading.read_bytes, name="train.jsonl")
GOOD = b'{"id": "a", "text": "one", "labels": ["x"]}\n'


def test_rows_become_examples(tmp_path):
    rows = [
        {"id": "a", "text": "Älter", "labels": ["x", "y", "x"], "features": ["f"], "more": 1},
        {"id": 7, "text": "", "labels": []},
        {"text": "no id", "labels": ["z"], "features": None},
    ]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    assert read_bytes(tmp_path, content) == [
        Example("a", "Älter", ("x", "y"), ("f",)),
        Example("7", "", ()),
        Example("train-3", "no id", ("z",)),
    ]


def test_byte_order_mark_carriage_returns_and_blank_lines_are_accepted(tmp_path):
    content = b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n") + b"\r\n  \n" + GOOD
    assert read_bytes(tmp_path, content) == [Example("a", "one", ("x",))] * 2


def test_fields_can_be_renamed_and_texts_joined(tmp_path):
    content = b'{"name": "n", "title": "T", "body": "B", "tags": ["x"], "who": ["u"]}'
    options = {
        "id_field": "name",
        "text_field": "title, body",
        "labels_field": "tags",
        "features_field": "who",
    }
    assert read_bytes(tmp_path, content, **options) == [Example("n", "T\nB", ("x",), ("u",))]


def test_one_of_several_texts_may_be_empty_or_null(tmp_path):
    content = (
        b'{"title": "T", "body": null, "labels": []}\n{"title": "", "body": "B", "labels": []}'
    )
    found = read_bytes(tmp_path, content, text_field="title,body")
    assert [example.text for example in found] == ["T", "B"]


@pytest.mark.parametrize("row", [b'{"text": "t"}', b'{"text": "t", "labels": null}'])
def test_labels_may_be_absent_where_they_are_not_asked_for(tmp_path, row):
    assert read_bytes(tmp_path, row, require_labels=False) == [Example("train-1", "t")]


def test_a_surrogate_pair_is_a_character(tmp_path):
    content = b'{"id": "a", "text": "\\ud83d\\ude00 \\u00e9", "labels": []}'
    assert read_bytes(tmp_path, content)[0].text == "\U0001f600 é"


def row(text=b'"t"', labels=b'["x"]', more=b""):
    return b'{"text": ' + text + b', "labels": ' + labels + more + b"}"


# Each broken row, and what its message must say besides the place: the problem, the way out.
BAD_ROWS = {
    "not JSON": (b'{"text": "t", "labels"', "is not JSON", "one object per line"),
    "not an object": (b'["t"]', "must be a JSON object, got a list", "one object per line"),
    "no text": (b'{"body": "t", "labels": []}', "'text' is missing", "--text-field"),
    "text null": (row(text=b"null"), "'text' must be a string, got null", 'Write ""'),
    "no labels": (b'{"text": "t"}', "'labels' is missing", "--labels-field"),
    "labels a string": (row(labels=b'"sport"'), "'labels' must be", 'got "sport". Write ["sport"]'),
    "labels true": (row(labels=b"true"), "'labels' must be a list of strings", "or [] for none"),
    "labels numbers": (row(labels=b'["x", 3]'), "'labels' must be", "got 3 in it. Write each"),
    "label empty": (row(labels=b'["x", ""]'), "'labels' holds an empty string", "Remove it"),
    "features a string": (row(more=b', "features": "f"'), "'features' must be", 'Write ["f"]'),
    "id a list": (row(more=b', "id": []'), "'id' must be a string", "Write a string"),
    "not UTF-8": (b'{"text": "\xff', "is not UTF-8 (byte 0xff at column 11)", "--encoding cp1252"),
    "NUL byte": (row(text=b'"a\0b"'), "holds a NUL byte", "Remove it"),
    "NUL escaped": (row(text=b'"a\\u0000"'), "holds a NUL character", "Remove it"),
    "half a pair in text": (row(text=b'"\\ud800"'), "holds half a character", "Remove it"),
    "nested deeply": (b"[" * 100_000, "is nested too deeply", "one object per line"),
    "huge integer": (row(more=b', "n": ' + b"9" * 5000), "too many digits", "Write it as a string"),
    "long values": (row(labels=b'"' + b"w " * 5000 + b'"'), "'labels' must be a list", "Write ["),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_says_where_what_and_the_way_out_or_is_skipped(tmp_path, case):
    line, *says = BAD_ROWS[case]
    content = GOOD + b"\n" + line + b"\n" + GOOD
    assert len(check_bad_row(tmp_path, content, "train.jsonl", "train.jsonl line 3", *says)) == 2


def test_a_file_name_cannot_break_the_message(tmp_path):
    path = tmp_path / "two\nlines.jsonl"
    path.write_bytes(b"nonsense\n")
    with pytest.raises(BadRowError, match=r"^two\\nlines\.jsonl line 1: "):
        read(path)


def test_known_labels_are_read_where_their_fields_are_named(tmp_path):
    rows = b'{"text": "t", "right": ["x", "x"], "wrong": null}\n{"text": "t"}\n'
    fields = {"present_field": "right", "absent_field": "wrong"}
    first, second = read_bytes(tmp_path, rows, require_labels=False, **fields)
    assert first.known == KnownLabels(("x",))
    assert second.known == KnownLabels()
    assert read_bytes(tmp_path, rows, require_labels=False)[0].known is None


def test_known_labels_that_a_check_refuses_make_a_bad_row(tmp_path):
    def check(known):
        if "y" in known.present:
            raise DataError("'y' is unknown.")

    rows = b'{"text": "t", "right": ["x"]}\n{"text": "t", "right": ["y"]}\n'
    options = {"require_labels": False, "present_field": "right", "check_known": check}
    with pytest.raises(BadRowError, match=r"train.jsonl line 2: 'y' is unknown"):
        read_bytes(tmp_path, rows, **options)
    bad_rows = BadRows("skip")
    assert len(read(tmp_path / "train.jsonl", bad_rows, **options)) == 1
    assert bad_rows.n_skipped == 1
