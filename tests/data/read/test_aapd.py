"""The AAPD pair files."""

from __future__ import annotations

import pytest

from setrnn.data.example import Example
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.errors import BadRowError, DataError


def write_pair(folder, stem, texts, labels):
    (folder / f"text_{stem}").write_bytes(texts)
    (folder / f"label_{stem}").write_bytes(labels)


def test_lines_of_the_pair_make_documents(tmp_path):
    write_pair(tmp_path, "val", b"one two\r\nthree", b"cs.CV stat.ML\r\n\r\n")
    examples = list(open_dataset(tmp_path).require("valid").read(BadRows()))
    assert examples == [
        Example("valid-1", "one two", ("cs.CV", "stat.ML")),
        Example("valid-2", "three"),
    ]


def test_a_folder_without_training_texts_offers_the_rest(tmp_path):
    (tmp_path / "label_train").write_bytes(b"cs.CV\n")
    write_pair(tmp_path, "val", b"one\n", b"cs.CV\n")
    write_pair(tmp_path, "test", b"one\n", b"cs.CV\n")
    assert sorted(open_dataset(tmp_path).splits) == ["test", "valid"]
    (tmp_path / "label_test").unlink()  # texts alone are enough where labels are not required
    split = open_dataset(tmp_path, ReadOptions(require_labels=False)).require("test")
    assert list(split.read(BadRows())) == [Example("test-1", "one")]


@pytest.mark.parametrize("policy", ["stop", "skip"])
@pytest.mark.parametrize(("n_texts", "n_labels", "file"), [(2, 3, "text"), (1200, 3, "label")])
def test_files_of_different_length_are_refused(tmp_path, policy, n_texts, n_labels, file):
    write_pair(tmp_path, "train", b"one\n" * n_texts, b"cs.CV\n" * n_labels)
    with pytest.raises(DataError, match=f"{file}_train has {min(n_texts, n_labels)} lines, fewer"):
        list(open_dataset(tmp_path).require("train").read(BadRows(policy)))


@pytest.mark.parametrize(
    ("texts", "labels", "says"),
    [
        (b"one\n\xff\nthree\n", b"a\nb\nc\n", "label_train line 2: is not UTF-8"),
        (b"one\ntwo\nthree\n", b"a\n\xff\nc\n", "label_train line 2: is not UTF-8"),
        (
            b"one\nt\0wo\nthree\n",
            b"a\nb\nc\n",
            "label_train line 2: holds a NUL byte",
        ),
        (
            b"one\n" + b"w" * 500 + b"\nthree\n",
            b"a\nb\nc\n",
            "label_train line 2: is longer than",
        ),
    ],
)
def test_a_bad_line_costs_one_document_and_keeps_the_pairs(tmp_path, texts, labels, says):
    write_pair(tmp_path, "train", texts, labels)
    split = open_dataset(tmp_path, ReadOptions(max_row_bytes=100)).require("train")
    with pytest.raises(BadRowError, match=says):
        list(split.read(BadRows()))
    assert list(split.read(BadRows("skip"))) == [
        Example("train-1", "one", ("a",)),
        Example("train-3", "three", ("c",)),
    ]
