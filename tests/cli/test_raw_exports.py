"""Raw exports on the command line: what stops, what is said, and what predictions look like."""

import csv
import io
import json
import sys

import pyarrow.parquet as pq
import pytest

from raw_exports import FILES, LATIN, OPTIONS, write_exports
from setrnn.data.cache import Source
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.read import ReadOptions, write_examples
from setrnn.tagging.documents import open_documents
from setrnn.tagging.evaluate import evaluate
from setrnn.tagging.learn.train import train
from setrnn.tagging.loading import load

N_ROWS = 30
FIELDS = OPTIONS[:-2]  # without the separator


@pytest.fixture
def exports(tmp_path):
    return write_exports(tmp_path / "exports", N_ROWS)


def read_csv(file):
    with file.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


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
    result = setrnn(*arguments, *FIELDS)
    assert result.code == 1
    assert "your labels contain ', '. Did you mean --label-separator ','?" in result.err
    assert not out.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["folder", "glob", "files"])
def test_files_are_joined_and_their_ids_are_told_apart(setrnn, exports, tmp_path, form):
    places = {
        "folder": [exports],
        "glob": [exports / "*.csv"],
        "files": [exports / name for name in FILES],
    }[form]
    out = tmp_path / "all.jsonl"
    result = setrnn("data", "convert", *places, out, *OPTIONS)
    assert result.code == 0, result.err
    assert "'beta:s1'" in result.err
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len({row["id"] for row in rows}) == N_ROWS * len(FILES)
    assert "\n" in rows[0]["text"]  # title and description
    result = setrnn("data", "convert", *places, out, *OPTIONS, "--id-prefix", "none")
    assert "begins with" not in result.err
    assert '"id": "s1"' in out.read_text(encoding="utf-8")


def test_the_likely_encoding_is_named_and_works(setrnn, tmp_path):
    folder = write_exports(tmp_path / "latin", 5, LATIN)
    result = setrnn("data", "info", folder, *OPTIONS)
    assert result.code == 1
    assert "--encoding cp1252" in result.err
    assert setrnn("data", "info", folder, *OPTIONS, "--encoding", "cp1252").code == 0
    result = setrnn("data", "info", folder, *OPTIONS, "--encoding", "klingon")
    assert result.code == 1
    assert "no encoding 'klingon'" in result.err


def test_a_missing_column_lists_the_near_ones_first(setrnn, exports):
    result = setrnn("data", "info", exports)
    assert result.code == 1
    assert "it has description, title, " in result.err
    assert "--text-field" in result.err


def test_twins_are_listed_and_written_as_a_map(setrnn, exports, tmp_path):
    file = tmp_path / "map.csv"
    result = setrnn("data", "info", exports, *OPTIONS, "--write-label-map", file)
    assert "Likely twins" in result.out
    assert {"from": "Sports", "to": "Sport"} in read_csv(file)
    result = setrnn("data", "info", exports, *OPTIONS, "--label-map", file)
    assert "Likely twins" not in result.out


@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_tenth_is_set_aside_and_said_unless_all_is_wanted(setrnn, corpus, tmp_path, all_of_it):
    file, out = corpus / "train.jsonl", tmp_path / "model"
    more = ["--no-valid"] if all_of_it else []
    result = setrnn("train", file, "--method", "br", "--out", out, *more)
    assert result.code == 0, result.err
    said = [line for line in result.err.splitlines() if "set aside" in line]
    assert len(said) == (0 if all_of_it else 1)
    assert all("--no-valid" in line for line in said)
    (prepared,) = (tmp_path / "cache").iterdir()
    n_documents = Prepared(prepared).description["n_documents"]
    assert n_documents == ({"train": 400} if all_of_it else {"train": 300, "valid": 100})
    assert (load(out).calibration is None) == all_of_it


def test_no_valid_part_and_a_valid_file_exclude_each_other(setrnn, corpus, tmp_path):
    files = (corpus / "train.jsonl", "--valid", corpus / "valid.jsonl")
    result = setrnn("train", *files, "--method", "br", "--out", tmp_path / "m", "--no-valid")
    assert result.code == 1
    assert "valid" in result.err


def test_predictions_as_csv_keep_the_columns_of_the_input(setrnn, exports, trained, tmp_path):
    out, plain = tmp_path / "out.csv", tmp_path / "out.jsonl"
    options = (exports, "--text-field", "title,description", "--id-field", "show_id")
    assert setrnn("predict", trained, *options, "--out", plain).code == 0
    result = setrnn("predict", trained, *options, "--out", out)
    assert result.code == 0, result.err
    rows = read_csv(out)
    expected = [json.loads(line) for line in plain.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == len(expected) == N_ROWS * len(FILES)
    for row, found in zip(rows, expected, strict=True):
        assert row["show_id"] == found["id"]
        assert row["labels"] == ";".join(found["labels"])
        assert float(row["probability"]) == found["probability"]
        assert row["notes"] == " ".join(found.get("notes", []))
    assert rows[1]["title"].startswith("'=SUM(2)")
    assert rows[0]["listed_in"].istitle()


@pytest.mark.parametrize(("name", "has_mark"), [("alpha.csv", True), ("beta.csv", False)])
def test_a_csv_of_a_spreadsheet_stays_one(setrnn, exports, trained, tmp_path, name, has_mark):
    out = tmp_path / "out.csv"
    assert (
        setrnn("predict", trained, exports / name, "--text-field", "title", "--out", out).code == 0
    )
    assert out.read_bytes().startswith(b"\xef\xbb\xbf") == has_mark


def test_predictions_as_parquet_keep_types(setrnn, corpus, trained, tmp_path):
    out = tmp_path / "out.parquet"
    assert setrnn("predict", trained, corpus / "test.jsonl", "--out", out).code == 0
    first = pq.read_table(out).to_pylist()[0]
    assert list(first)[:3] == ["id", "text", "labels"]
    assert isinstance(first["labels"], list)  # the true ones
    assert isinstance(first["predicted_labels"], list)
    assert isinstance(first["probability"], float)
    assert len(first["label_probabilities"]) == len(first["predicted_labels"])


def test_texts_are_tagged_from_the_command_line(setrnn, trained):
    text = "The storm closed the port."
    result = setrnn("predict", trained, "--text", text, "--text", "zqxj wqw pfft")
    assert result.code == 0, result.err
    first, second = map(json.loads, result.out.splitlines())
    assert first["labels"] == list(load(trained).tag([text])[0].labels)
    assert "notes" not in first
    assert "unknown" in second["notes"][0]
    for wrong in ((), ("in.csv", "--text", text)):
        result = setrnn("predict", trained, *wrong)
        assert result.code == 1
        assert "either INPUT or --text" in result.err


@pytest.mark.parametrize(
    "content", ["A storm\nThe vote\n", '{"text": "A storm"}\n{"text": "The vote"}\n']
)
def test_standard_input_is_tagged(setrnn, trained, monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    result = setrnn("predict", trained, "-")
    assert result.code == 0, result.err
    rows = list(map(json.loads, result.out.splitlines()))
    expected = load(trained).tag(["A storm", "The vote"])
    assert [row["labels"] for row in rows] == [list(each.labels) for each in expected]


def test_rows_that_were_cut_or_empty_have_notes(setrnn, trained, tmp_path):
    file = tmp_path / "in.jsonl"
    texts = ["", "storm " * 600, "The storm closed the port."]
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    result = setrnn("predict", trained, file)
    empty, cut, whole = map(json.loads, result.out.splitlines())
    assert "empty" in empty["notes"][0]
    assert "500 of its 600" in cut["notes"][0]
    assert "notes" not in whole


def test_a_model_is_measured_on_several_files(setrnn, corpus, trained, tmp_path):
    report = tmp_path / "report.json"
    files = [corpus / "test.jsonl", corpus / "valid.jsonl"]
    result = setrnn("evaluate", trained, *files, "--json", report)
    assert result.code == 0, result.err
    assert json.loads(report.read_text())["n_documents"] == 140


def test_the_file_can_be_a_feature(setrnn, exports, tmp_path):
    out = tmp_path / "all.jsonl"
    assert setrnn("data", "convert", exports, out, *OPTIONS, "--source-feature").code == 0
    assert '"features": ["source:gamma"]' in out.read_text(encoding="utf-8")


def test_python_takes_several_files_too(exports, tmp_path):
    options = ReadOptions("show_id", "title,description", "listed_in", label_separator=",")
    source = Source([str(exports / name) for name in FILES], options)
    tagger = train(source, "br", cut_valid=False)
    assert tagger.calibration is None
    assert open_documents(source).split == "train"
    converted = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for number, file in enumerate(converted):
        write_examples([Example(str(number), "a storm", ("weather",))] * 2, file)
    assert evaluate(tagger, converted).scores.n_documents == 4
