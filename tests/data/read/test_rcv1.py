"""The public RCV1-v2 files."""

from __future__ import annotations

import gzip

import pytest

from setrnn.data.example import Example
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.errors import BadRowError, DataError

TRAIN = "lyrl2004_tokens_train.dat"
QRELS = "rcv1-v2.topics.qrels"
RECORD = b".I 2286\n.W\nrecov excit\nmexic\n\n"


def write(folder, tokens=RECORD, qrels=b"E11 2286 1\nECAT 2286 1\nM11 2287 1\nC15 2286 0\n"):
    (folder / TRAIN).write_bytes(tokens)
    (folder / QRELS).write_bytes(qrels)
    return folder


def read(folder, split="train", bad_rows=None, **options):
    dataset = open_dataset(folder, ReadOptions(**options))
    return list(dataset.require(split).read(bad_rows or BadRows()))


def test_records_and_topics_make_documents(tmp_path):
    write(tmp_path, RECORD + b".I 2287\n.W\nwall\n.I 2286\n.W\n")
    assert read(tmp_path) == [
        Example("2286", "recov excit mexic", ("E11", "ECAT")),
        Example("2287", "wall", ("M11",)),
        Example("2286", "", ("E11", "ECAT")),
    ]


def test_the_test_part_joins_its_files_packed_or_not(tmp_path):
    write(tmp_path)
    for part in range(4):
        record = gzip.compress(b".I %d\n.W\nwall\n\n" % part)
        (tmp_path / f"lyrl2004_tokens_test_pt{part}.dat.gz").write_bytes(record)
    (tmp_path / QRELS).unlink()
    qrels = b"".join(b"C15 %d 1\n" % part for part in range(4))
    (tmp_path / f"{QRELS}.gz").write_bytes(gzip.compress(qrels))
    assert [example.id for example in read(tmp_path, "test")] == ["0", "1", "2", "3"]


def test_missing_topics_are_asked_for_by_name(tmp_path):
    write(tmp_path)
    (tmp_path / QRELS).unlink()
    with pytest.raises(DataError, match=r"tokens_train\.dat but not its labels\. Put rcv1-v2"):
        open_dataset(tmp_path)
    assert read(tmp_path, require_labels=False) == [Example("2286", "recov excit mexic")]


def test_the_same_file_packed_and_plain_is_refused(tmp_path):
    write(tmp_path)
    (tmp_path / f"{TRAIN}.gz").write_bytes(gzip.compress(RECORD))
    with pytest.raises(DataError, match=r"holds both .*\.dat and .*\.dat\.gz"):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (b".I\n.W\nwall\n\n", r"line 6: .*not a record"),
        (b".I 2287\nwall\n\n", "line 6: .*not a record"),
        (b".I 2287\n.W\nw\xffll\n\n", "line 6: is not UTF-8"),
        (b".I 2287\n.W\nw\0ll\n\n", "line 6: holds a NUL byte"),
        (b".I 2287\n.W\n" + b"wall\n" * 100 + b"\n", "line 6: is longer than 90 bytes"),
        (b".I 9999\n.W\nwall\n\n", r"line 6: document 9999 is not in rcv1-v2\.topics\.qrels"),
    ],
)
def test_a_broken_record_costs_only_itself(tmp_path, record, says):
    write(tmp_path, RECORD + record + b".I 2287\n.W\nwall\n")
    with pytest.raises(BadRowError, match=r"tokens_train\.dat " + says):
        read(tmp_path, max_row_bytes=90)
    examples = read(tmp_path, bad_rows=BadRows("skip"), max_row_bytes=90)
    assert [example.id for example in examples] == ["2286", "2287"]


@pytest.mark.parametrize("line", [b"E11 2286\n", b"E11 2286 yes\n", b"\xff 2286 1\n"])
def test_a_broken_topic_line_is_a_bad_row(tmp_path, line):
    write(tmp_path, qrels=b"E11 2286 1\n" + line)
    with pytest.raises(BadRowError, match=r"rcv1-v2\.topics\.qrels line 2: "):
        read(tmp_path)
    assert read(tmp_path, bad_rows=BadRows("skip"))[0].labels == ("E11",)
