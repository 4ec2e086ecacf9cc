import gzip
import json

import pytest

from json_lines import read_rows
from raw_exports import LATIN, OPTIONS, write_exports

GOOD = '{"text": "a good row", "labels": ["x"]}\n'


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bad_files(place):
    """Write the bad inputs, by what is wrong: (file, what its message must hold)."""
    rows = {
        "not JSON": (b"{text: 1}", ("line 2", "JSON")),
        "a missing field": (b'{"labels": []}', ("line 2", "'text'", "--text-field")),
        "labels as a string": (
            b'{"text": "t", "labels": "sport"}',
            ("line 2", "'labels'", 'Write ["sport"]'),
        ),
        "labels not strings": (b'{"text": "t", "labels": [3]}', ("line 2", "'labels'", "string")),
        "invalid UTF-8": (b'{"text": "\xff", "labels": []}', ("line 2", "UTF-8")),
        "a NUL byte": (b'{"text": "a\0b", "labels": []}', ("line 2", "NUL")),
        "a 50 MB line": (
            b'{"text": "' + b"a " * 25_000_000 + b'", "labels": []}',
            ("line 2", "10,000,000 bytes"),
        ),
    }
    for name, (row, wanted) in rows.items():
        file = place / f"{name.replace(' ', '-')}.jsonl"
        file.write_bytes(GOOD.encode() + row + b"\n" + GOOD.encode())
        yield name, file, wanted


def test_bad_rows_stop_the_command_with_one_line_and_nothing_written(setrnn, place):
    for name, file, wanted in bad_files(place):
        for out in ("out.jsonl", "out"):
            result = setrnn("data", "convert", file, place / out)
            assert result.code == 1, name
            (line,) = result.error_lines
            assert all(part in line for part in (file.name, *wanted)), line
            assert len(line) < 300
            assert not (place / out).exists()
    assert not [each for each in place.iterdir() if each.suffix != ".jsonl"]


@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_bad_files_stop_the_command_either_way(setrnn, place, policy):
    (place / "empty.jsonl").write_bytes(b"")
    packed = gzip.compress(GOOD.encode() * 1000)
    (place / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    (place / "wrong.csv").write_text("id,body,labels\n1,t,x\n")
    (place / "folder").mkdir()
    (place / "folder" / "test.jsonl").write_text(GOOD)
    cases = {
        "empty.jsonl": "holds no documents",
        "missing.jsonl": "does not exist",
        "cut.jsonl.gz": "cut short",
        "wrong.csv": "has no column 'text'",
    }
    for file, said in cases.items():
        for command in (["data", "info"], ["train", "--method", "br", "--out", "model"]):
            result = setrnn(*command, file, "--on-bad-row", policy)
            assert result.code == 1, file
            (line,) = result.error_lines
            assert said in line
            assert file in line
    result = setrnn("train", "folder", "--method", "br", "--out", "model", "--on-bad-row", policy)
    assert result.code == 1
    assert "has no 'train' part: found test" in result.err
    assert not (place / "model").exists()


def test_convert_reads_tables_with_other_names(setrnn, place):
    (place / "in.tsv").write_text("key\ttitle\tbody\ttags\n7\tA\tB c\tx|y|x\n8\tD\t\t\n")
    options = ["--id-field", "key", "--text-field", "title,body", "--labels-field", "tags"]
    result = setrnn("data", "convert", "in.tsv", "o.jsonl", *options, "--label-separator", "|")
    assert result.code == 0, result.err
    assert read_rows(place / "o.jsonl") == [
        {"id": "7", "text": "A\nB c", "labels": ["x", "y"]},
        {"id": "8", "text": "D", "labels": []},
    ]


def test_split_copies_the_parts_that_are_there(setrnn, corpus, place):
    (place / "in").mkdir()
    for name in ("train", "test"):
        (place / "in" / f"{name}.jsonl").write_bytes((corpus / f"{name}.jsonl").read_bytes())
    result = setrnn("data", "split", "in", "out")
    assert result.code == 1
    assert "keep it with --test 0" in result.err
    assert setrnn("data", "split", "in", "out", "--test", "0").code == 0
    assert read_rows(place / "out" / "test.jsonl") == read_rows(corpus / "test.jsonl")


def test_prepared_folders_are_for_training_only(setrnn, corpus, place):
    folder = setrnn("data", "prepare", corpus, "--vectors", "none").out.strip()
    result = setrnn("data", "convert", folder, "out")
    assert result.code == 1
    assert "is a prepared folder" in result.err


def test_train_says_which_share_is_cut_and_the_setting(setrnn, place, monkeypatch):
    monkeypatch.setenv("SETRNN_CACHE", str(place / "cache"))
    texts = ["rain in the valley", "budget " * 700, "goal " * 60]
    rows = [{"text": texts[n % 3], "labels": [f"label {n % 3}"]} for n in range(30)]
    (place / "news.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    train = ("train", "news.jsonl", "--method", "br", "--no-valid")
    result = setrnn(*train, "--out", "cut")
    assert "500 words: 33.3% of train. " in result.err
    assert "--set text.windows=2" in result.err
    result = setrnn(*train, "--out", "whole", "--set", "text.windows=2")
    assert result.code == 0
    assert "Cut after" not in result.err
    result = setrnn(
        *train, "--out", "short", "--set", "text.windows=2", "--set", "text.max_words=9"
    )
    assert "18 words: 66.7% of train. " in result.err


@pytest.fixture
def exports(tmp_path):
    return write_exports(tmp_path / "exports", 30)


@pytest.mark.parametrize("command", ["info", "convert", "split", "train", "evaluate"])
def test_labels_in_one_string_stop_every_command(setrnn, exports, trained, tmp_path, command):
    out = tmp_path / "out.jsonl"
    arguments = {
        "info": ("data", "info", exports),
        "convert": ("data", "convert", exports, out),
        "split": ("data", "split", exports, tmp_path / "out"),
        "train": ("train", exports, "--method", "br", "--out", tmp_path / "out"),
        "evaluate": ("evaluate", trained, exports),
    }[command]
    result = setrnn(*arguments, *OPTIONS[:-2])
    assert result.code == 1
    assert "your labels contain ','. Did you mean --label-separator ','?" in result.err
    assert not out.exists()
    assert not (tmp_path / "out").exists()


def test_the_likely_encoding_is_named_and_works(setrnn, tmp_path):
    folder = write_exports(tmp_path / "latin", 5, LATIN)
    result = setrnn("data", "info", folder, *OPTIONS)
    assert result.code == 1
    assert "--encoding cp1252" in result.err
    assert setrnn("data", "info", folder, *OPTIONS, "--encoding", "cp1252").code == 0
    result = setrnn("data", "info", folder, *OPTIONS, "--encoding", "klingon")
    assert result.code == 1
    assert "no encoding 'klingon'" in result.err
