"""The public files of AAPD, RCV1-v2 and Reuters-21578."""

from __future__ import annotations

import gzip

import pytest

from reading import read
from setrnn.data.example import Example
from setrnn.data.read import BadRows, open_dataset
from setrnn.errors import BadRowError, DataError


def write_pair(folder, stem, texts, labels):
    (folder / f"text_{stem}").write_bytes(texts)
    (folder / f"label_{stem}").write_bytes(labels)


def test_lines_of_two_aapd_files_make_documents(tmp_path):
    write_pair(tmp_path, "val", b"one two\r\nthree", b"cs.CV stat.ML\r\n\r\n")
    assert read(tmp_path, split="valid") == [
        Example("valid-1", "one two", ("cs.CV", "stat.ML")),
        Example("valid-2", "three"),
    ]
    (tmp_path / "label_train").write_bytes(b"cs.CV\n")
    write_pair(tmp_path, "test", b"one\n", b"cs.CV\n")
    assert sorted(open_dataset(tmp_path).splits) == ["test", "valid"]
    (tmp_path / "label_test").unlink()  # texts alone are enough where labels are not required
    assert read(tmp_path, split="test", require_labels=False) == [Example("test-1", "one")]


@pytest.mark.parametrize("policy", ["stop", "skip"])
@pytest.mark.parametrize(("n_texts", "n_labels", "file"), [(2, 3, "text"), (1200, 3, "label")])
def test_aapd_files_of_different_length_are_refused(tmp_path, policy, n_texts, n_labels, file):
    write_pair(tmp_path, "train", b"one\n" * n_texts, b"cs.CV\n" * n_labels)
    with pytest.raises(DataError, match=f"{file}_train has {min(n_texts, n_labels)} lines, fewer"):
        read(tmp_path, bad_rows=BadRows(policy))


@pytest.mark.parametrize(
    ("texts", "labels", "says"),
    [
        (b"one\n\xff\nthree\n", b"a\nb\nc\n", "is not UTF-8"),
        (b"one\ntwo\nthree\n", b"a\n\xff\nc\n", "is not UTF-8"),
        (b"one\n" + b"w" * 500 + b"\nthree\n", b"a\nb\nc\n", "is longer than"),
    ],
)
def test_a_bad_aapd_line_costs_one_document_and_keeps_the_pairs(tmp_path, texts, labels, says):
    write_pair(tmp_path, "train", texts, labels)
    with pytest.raises(BadRowError, match=f"label_train line 2: {says}"):
        read(tmp_path, max_row_bytes=100)
    assert read(tmp_path, bad_rows=BadRows("skip"), max_row_bytes=100) == [
        Example("train-1", "one", ("a",)),
        Example("train-3", "three", ("c",)),
    ]


TOKENS, QRELS = "lyrl2004_tokens_train.dat", "rcv1-v2.topics.qrels"
TOPICS = b"E11 2286 1\nECAT 2286 1\nM11 2287 1\nC15 2286 0\n"
RCV1 = b".I 2286\n.W\nrecov excit\nmexic\n\n"


def write_rcv1(folder, tokens=RCV1, qrels=TOPICS):
    (folder / TOKENS).write_bytes(tokens)
    (folder / QRELS).write_bytes(qrels)


def test_rcv1_records_and_topics_make_documents(tmp_path):
    write_rcv1(tmp_path, RCV1 + b".I 2287\n.W\nwall\n.I 2286\n.W\n")
    assert read(tmp_path) == [
        Example("2286", "recov excit mexic", ("E11", "ECAT")),
        Example("2287", "wall", ("M11",)),
        Example("2286", "", ("E11", "ECAT")),
    ]


def test_the_rcv1_test_part_joins_its_files_packed_or_not(tmp_path):
    for part in range(4):
        record = gzip.compress(b".I %d\n.W\nwall\n\n" % part)
        (tmp_path / f"lyrl2004_tokens_test_pt{part}.dat.gz").write_bytes(record)
    qrels = b"".join(b"C15 %d 1\n" % part for part in range(4))
    (tmp_path / f"{QRELS}.gz").write_bytes(gzip.compress(qrels))
    assert [example.id for example in read(tmp_path, split="test")] == ["0", "1", "2", "3"]


def test_rcv1_files_that_are_missing_or_there_twice_are_refused(tmp_path):
    write_rcv1(tmp_path)
    (tmp_path / QRELS).unlink()
    with pytest.raises(DataError, match=r"tokens_train\.dat but not its labels\. Put rcv1-v2"):
        open_dataset(tmp_path)
    assert read(tmp_path, require_labels=False) == [Example("2286", "recov excit mexic")]
    (tmp_path / f"{TOKENS}.gz").write_bytes(gzip.compress(RCV1))
    with pytest.raises(DataError, match=r"holds both .*\.dat and .*\.dat\.gz"):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (b".I\n.W\nwall\n\n", "line 6: .*not a record"),
        (b".I 2287\nwall\n\n", "line 6: .*not a record"),
        (b".I 2287\n.W\nw\xffll\n\n", "line 6: is not UTF-8"),
        (b".I 2287\n.W\n" + b"wall\n" * 100 + b"\n", "line 6: is longer than 90 bytes"),
        (b".I 9999\n.W\nwall\n\n", r"line 6: document 9999 is not in rcv1-v2\.topics\.qrels"),
    ],
)
def test_a_broken_rcv1_record_costs_only_itself(tmp_path, record, says):
    write_rcv1(tmp_path, RCV1 + record + b".I 2287\n.W\nwall\n")
    with pytest.raises(BadRowError, match=r"tokens_train\.dat " + says):
        read(tmp_path, max_row_bytes=90)
    examples = read(tmp_path, bad_rows=BadRows("skip"), max_row_bytes=90)
    assert [example.id for example in examples] == ["2286", "2287"]


@pytest.mark.parametrize("line", [b"E11 2286\n", b"E11 2286 yes\n", b"\xff 2286 1\n"])
def test_a_broken_topic_line_is_a_bad_row(tmp_path, line):
    write_rcv1(tmp_path, qrels=b"E11 2286 1\n" + line)
    with pytest.raises(BadRowError, match=r"rcv1-v2\.topics\.qrels line 2: "):
        read(tmp_path)
    assert read(tmp_path, bad_rows=BadRows("skip"))[0].labels == ("E11",)


def reuters(number, split="TRAIN", topics="YES", labels=("cocoa",), text=None):
    inner = "".join(f"<D>{label}</D>" for label in labels)
    text = text or f"<TEXT>&#2;\n<TITLE>TITLE {number}</TITLE>\n<BODY>Body\n&#3;</BODY></TEXT>"
    return (
        f'<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="X" OLDID="1" '
        f'NEWID="{number}">\n<DATE>1-JAN-1987</DATE>\n<TOPICS>{inner}</TOPICS>\n'
        f"<PLACES><D>usa</D></PLACES>\n{text}\n</REUTERS>\n"
    ).encode("latin-1")


def write_reuters(folder, *records, name="reut2-000.sgm"):
    (folder / name).write_bytes(b'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + b"".join(records))


def test_the_reuters_split_follows_lewissplit_and_topics(tmp_path):
    write_reuters(tmp_path, reuters(1), reuters(2, "TEST"), reuters(3, topics="NO"))
    name = "reut2-001.sgm"
    write_reuters(tmp_path, reuters(4, labels=()), reuters(5, "NOT-USED"), name=name)
    assert read(tmp_path) == [
        Example("1", "TITLE 1\nBody", ("cocoa",)),
        Example("4", "TITLE 4\nBody"),
    ]
    assert [example.id for example in read(tmp_path, split="test")] == ["2"]


def test_reuters_texts_are_decoded_with_or_without_a_body(tmp_path):
    text = "<TEXT>&#2;<TITLE>A &lt;B> &amp; \xe9</TITLE><BODY>x &#22;&#3;</BODY></TEXT>"
    raw = reuters(2, text='<TEXT TYPE="UNPROC">&#2;\nRaw &lt;text>\n&#3;</TEXT>')
    brief = reuters(3, text='<TEXT TYPE="BRIEF">&#2;<TITLE>Only</TITLE></TEXT>')
    write_reuters(tmp_path, reuters(1, labels=("a&amp;b", "c"), text=text), raw, brief)
    first, *others = read(tmp_path)
    assert first == Example("1", "A <B> & é\nx", ("a&b", "c"))
    assert [example.text for example in others] == ["Raw <text>", "Only"]


BROKEN = {
    "not closed": (reuters(2).replace(b"</REUTERS>", b""), "has no </REUTERS>"),
    "no id": (reuters(2).replace(b"NEWID", b"ID"), "<REUTERS> must carry TOPICS, LEWISSPLIT and"),
    "no topics": (reuters(2).replace(b"</TOPICS>", b""), "has no complete <TOPICS>"),
    "body not closed": (reuters(2).replace(b"</BODY>", b""), "has no complete <BODY>"),
    "NUL byte": (reuters(2).replace(b"Body", b"B\0dy"), "holds a NUL byte"),
    "too long": (reuters(2).replace(b"Body", b"Body\n" * 200), "is longer than 500 bytes"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_reuters_record_costs_only_itself(tmp_path, case):
    broken, says = BROKEN[case]
    other = reuters(4, "TEST").replace(b"</BODY>", b"")  # of the other split: it does not count
    write_reuters(tmp_path, reuters(1), broken, reuters(3), other)
    with pytest.raises(BadRowError, match=rf"^reut2-000\.sgm line 11: .*{says}"):
        read(tmp_path, max_row_bytes=500)
    found = read(tmp_path, BadRows("skip"), max_row_bytes=500)
    assert [example.id for example in found] == ["1", "3"]


HEAD = b'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="1">'


@pytest.mark.parametrize(
    "hostile",
    [
        b"<REUTERS " + b"a" * 300_000 + b">",
        HEAD + b"<TOPICS>" + b"<D>" * 100_000 + b"</TOPICS><BODY>",
        HEAD + b"<TOPICS></TOPICS>" + b"<TEXT " * 50_000,
        HEAD + b"<TOPICS></TOPICS><TEXT>&#" + b"9" * 9_000 + b";</TEXT>",
    ],
)
def test_a_hostile_reuters_record_is_refused_at_once(tmp_path, hostile):
    write_reuters(tmp_path, hostile + b"</REUTERS>\n", reuters(2))
    with pytest.raises(BadRowError, match="line 2"):
        read(tmp_path)
    assert [example.id for example in read(tmp_path, bad_rows=BadRows("skip"))] == ["2"]
