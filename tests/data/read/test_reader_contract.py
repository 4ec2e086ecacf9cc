"""What every reader in the dict must do."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from setrnn.checks import check_reader
from setrnn.data.example import Example
from setrnn.data.read import READERS, BadRows, ReadOptions, write_examples

ROW = {"id": "1", "text": "one", "labels": ["x"]}


def written(suffix):
    """Return a function that writes a train part in one of our own formats."""

    def write(folder, _):
        write_examples([Example("1", "one", ("x",))], folder / f"train{suffix}")
        return folder

    return write


def csv(folder, _):
    (folder / "train.csv").write_text("id,text,labels\n1,one,x\n")
    return folder


def excel(folder, _):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in ROW, {"id": "1", "text": "one", "labels": "x"}:
        book.active.append(list(row) if row is ROW else list(row.values()))
    book.save(folder / "train.xlsx")
    return folder


def aapd(folder, _):
    (folder / "text_train").write_text("one\n")
    (folder / "label_train").write_text("x\n")
    return folder


def rcv1(folder, _):
    (folder / "lyrl2004_tokens_train.dat").write_text(".I 1\n.W\none\n\n")
    (folder / "rcv1-v2.topics.qrels").write_text("x 1 1\n")
    return folder


def reuters(folder, _):
    (folder / "reut2-000.sgm").write_text(
        '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" NEWID="1">\n<TOPICS><D>x</D></TOPICS>\n'
        "<TEXT><BODY>one</BODY></TEXT>\n</REUTERS>\n"
    )
    return folder


def huggingface(_, monkeypatch):
    module = types.ModuleType("datasets")
    module.load_dataset = lambda name, split, streaming: {"train": [ROW]}
    monkeypatch.setitem(sys.modules, "datasets", module)
    return Path("hf:news")


FIXTURES = {
    "jsonl": written(".jsonl"),
    "csv": csv,
    "excel": excel,
    "parquet": written(".parquet"),
    "aapd": aapd,
    "rcv1": rcv1,
    "reuters": reuters,
    "label-studio": written(".json"),
    "huggingface": huggingface,
}


def test_every_reader_has_a_fixture():
    assert FIXTURES.keys() == READERS.keys()


@pytest.mark.parametrize("name", READERS)
def test_another_readers_files_hold_nothing(name, tmp_path, monkeypatch):
    for other, write in FIXTURES.items():
        if other != name:
            folder = tmp_path / other
            folder.mkdir()
            place = write(folder, monkeypatch)
            assert READERS[name].find(place, ReadOptions()) == {}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_keeps_its_promises(name, tmp_path, monkeypatch):
    place = FIXTURES[name](tmp_path, monkeypatch)
    (found,) = READERS[name].find(place, ReadOptions())["train"].read(BadRows())
    assert (found.text, found.labels) == ("one", ("x",))
    check_reader(READERS[name], place, [found])
