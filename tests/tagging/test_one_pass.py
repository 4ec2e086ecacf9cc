"""Training parses a file once and hashes it once; nothing reads it again."""

import sys

from typer.testing import CliRunner

from setrnn.cli.app import app
from setrnn.config import TextSettings
from setrnn.data.cache import open_prepared
from setrnn.data.read import BadRows, write_examples
from setrnn.data.read.write import write_table
from setrnn.data.source import Source

opened = []
sys.addaudithook(
    lambda event, values: (
        opened.append(values[0])
        if event == "open" and str(values[0]).endswith("parsed-once.csv")
        else None
    )
)


def test_one_training_opens_its_file_twice(small_examples, tmp_path, monkeypatch):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "parsed-once.csv"
    write_table(
        ({"id": e.id, "text": e.text, "labels": e.labels} for e in small_examples["train"]), file
    )
    opened.clear()
    command = ["train", str(file), "--method", "br", "--out", str(tmp_path / "model")]
    command += ["--unlabelled-rows", "empty"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "On the valid part, by rule" in result.output
    assert len(opened) <= 2, "one hash, one reading"


def test_the_valid_part_is_the_one_that_readers_cut(small_examples, tmp_path):
    write_examples(small_examples["train"], tmp_path / "data.jsonl")
    source = Source(str(tmp_path / "data.jsonl"), cut_valid=True)
    prepared = open_prepared(source, TextSettings(), tmp_path / "cache")
    assert prepared.valid_is_cut
    for name, split in source.open().splits.items():
        part = prepared.split(name)
        assert part.ids(0, len(part)) == [each.id for each in split.read(BadRows())]
