"""Reuters-21578 in the ModApte split."""

from __future__ import annotations

import pytest

from setrnn.data.example import Example
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.errors import BadRowError


def record(number, split="TRAIN", topics="YES", labels=("cocoa",), text=None):
    inner = "".join(f"<D>{label}</D>" for label in labels)
    text = text or f"<TEXT>&#2;\n<TITLE>TITLE {number}</TITLE>\n<BODY>Body\n&#3;</BODY></TEXT>"
    return (
        f'<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" CGISPLIT="X" OLDID="1" '
        f'NEWID="{number}">\n<DATE>1-JAN-1987</DATE>\n<TOPICS>{inner}</TOPICS>\n'
        f"<PLACES><D>usa</D></PLACES>\n{text}\n</REUTERS>\n"
    ).encode("latin-1")


def write(folder, *records, name="reut2-000.sgm"):
    (folder / name).write_bytes(b'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + b"".join(records))


def read(place, split="train", bad_rows=None, **options):
    dataset = open_dataset(place, ReadOptions(**options))
    return list(dataset.require(split).read(bad_rows or BadRows()))


def test_the_split_follows_lewissplit_and_topics(tmp_path):
    write(tmp_path, record(1), record(2, "TEST"), record(3, topics="NO"))
    write(tmp_path, record(4, labels=()), record(5, "NOT-USED"), name="reut2-001.sgm")
    assert read(tmp_path) == [
        Example("1", "TITLE 1\nBody", ("cocoa",)),
        Example("4", "TITLE 4\nBody"),
    ]
    assert [example.id for example in read(tmp_path, "test")] == ["2"]


def test_entities_are_decoded_and_control_characters_dropped(tmp_path):
    text = "<TEXT>&#2;<TITLE>A &lt;B> &amp; \xe9</TITLE><BODY>x &#22;&#3;</BODY></TEXT>"
    write(tmp_path, record(1, labels=("a&amp;b", "c"), text=text))
    assert read(tmp_path) == [Example("1", "A <B> & é\nx", ("a&b", "c"))]


def test_texts_without_a_body_are_read(tmp_path):
    raw = record(1, text='<TEXT TYPE="UNPROC">&#2;\nRaw &lt;text>\n&#3;</TEXT>')
    write(tmp_path, raw, record(2, text='<TEXT TYPE="BRIEF">&#2;<TITLE>Only</TITLE></TEXT>'))
    assert [example.text for example in read(tmp_path)] == ["Raw <text>", "Only"]


BROKEN = {
    "not closed": (record(2).replace(b"</REUTERS>", b""), "has no </REUTERS>"),
    "no id": (record(2).replace(b"NEWID", b"ID"), "<REUTERS> must carry TOPICS, LEWISSPLIT and"),
    "no topics": (record(2).replace(b"</TOPICS>", b""), "has no complete <TOPICS>"),
    "no text": (record(2).replace(b"</TEXT>", b""), "has no complete <TEXT>"),
    "body not closed": (record(2).replace(b"</BODY>", b""), "has no complete <BODY>"),
    "NUL byte": (record(2).replace(b"Body", b"B\0dy"), "holds a NUL byte"),
    "too long": (record(2).replace(b"Body", b"Body\n" * 200), "is longer than 500 bytes"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_record_costs_only_itself(tmp_path, case):
    broken, says = BROKEN[case]
    write(tmp_path, record(1), broken, record(3))
    with pytest.raises(BadRowError, match=rf"^reut2-000\.sgm line 11: .*{says}"):
        read(tmp_path, max_row_bytes=500)
    found = read(tmp_path, "train", BadRows("skip"), max_row_bytes=500)
    assert [example.id for example in found] == ["1", "3"]


def test_a_broken_record_of_the_other_split_does_not_count(tmp_path):
    write(tmp_path, record(1), record(2, "TEST").replace(b"</BODY>", b""))
    assert len(read(tmp_path)) == 1


HEAD = b'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="1">'


@pytest.mark.parametrize(
    "hostile",
    [
        b"<REUTERS " + b"a" * 300_000 + b">",
        HEAD + b"<TOPICS>" + b"<D>" * 100_000 + b"</TOPICS><BODY>",
        HEAD + b"<TOPICS></TOPICS>" + b"<TEXT>" * 50_000,
        HEAD + b"<TOPICS></TOPICS>" + b"<TEXT " * 50_000,
        HEAD + b"<TOPICS></TOPICS><TEXT>&#" + b"9" * 9_000 + b";</TEXT>",
    ],
)
def test_a_hostile_record_is_refused_at_once_and_can_be_skipped(tmp_path, hostile):
    write(tmp_path, hostile + b"</REUTERS>\n", record(2))
    with pytest.raises(BadRowError, match="line 2"):
        read(tmp_path)
    bad_rows = BadRows("skip")
    assert [example.id for example in read(tmp_path, bad_rows=bad_rows)] == ["2"]
    assert bad_rows.n_skipped == 1
