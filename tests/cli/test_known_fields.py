"""`predict --present-field --absent-field`."""

import csv
import json
from dataclasses import replace

import pytest
from json_lines import read_rows

from setrnn.tagging.loading import load

TEXTS = ["The cup final was won in extra time", "Shares fell as rates rose", ""]
PRESENT = [["football"], [], None]
ABSENT = [["markets"], ["football", "markets"], None]


@pytest.fixture
def model(taggers, tmp_path):
    taggers["br-support"].save(tmp_path / "model")
    return tmp_path / "model"


def write_rows(file, present=PRESENT, absent=ABSENT):
    """Rows with known labels; a field that is None is left out."""
    rows = []
    for text, *known in zip(TEXTS, present, absent, strict=True):
        row = {"text": text, "right": known[0], "wrong": known[1]}
        rows.append({name: value for name, value in row.items() if value is not None})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_table(file):
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "right", "wrong"])
        for text, *known in zip(TEXTS, PRESENT, ABSENT, strict=True):
            writer.writerow([text, *(";".join(labels or []) for labels in known)])


def write_parquet(file):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": TEXTS, "right": PRESENT, "wrong": ABSENT}), file)


@pytest.mark.parametrize(
    ("suffix", "write"), [("jsonl", write_rows), ("csv", write_table), ("parquet", write_parquet)]
)
def test_rows_are_completed_as_in_python(setrnn, model, tmp_path, suffix, write):
    file, out = tmp_path / f"in.{suffix}", tmp_path / "out.jsonl"
    write(file)
    fields = ["--present-field", "right", "--absent-field", "wrong"]
    result = setrnn("predict", model, file, "--out", out, "--top", 2, *fields)
    assert result.code == 0, result.err
    expected = load(model).complete(TEXTS, PRESENT, ABSENT, top=2)
    for row, found in zip(read_rows(out), expected, strict=True):
        assert row["labels"] == list(found.labels)
        assert row["added"] == list(found.added)
        assert row["suggestion"] == found.suggestion
        assert row["probability"] == pytest.approx(found.probability)
        assert row["known_probability"] == pytest.approx(found.known_probability)
        assert len(row["alternatives"]) == 1
    assert "football" in read_rows(out)[0]["labels"]


def test_one_field_is_enough_and_it_may_be_that_of_the_labels(setrnn, model, tmp_path):
    file, out = tmp_path / "in.csv", tmp_path / "out.jsonl"
    file.write_text("text,labels\nThe cup final,football\nRates rose,\n")
    result = setrnn("predict", model, file, "--out", out, "--present-field", "labels")
    assert result.code == 0, result.err
    assert "football" in read_rows(out)[0]["labels"]


@pytest.mark.parametrize(
    ("present", "absent", "said"),
    [
        (["footbal"], [], "in.jsonl line 2: the model has no label 'footbal'. Did you mean"),
        (["football"], ["football"], "in.jsonl line 2: 'football' is both present and absent."),
        ("football", [], "in.jsonl line 2: 'right' must be a list of strings"),
    ],
)
def test_bad_rows_are_named_with_their_line_or_skipped(
    setrnn, model, tmp_path, present, absent, said
):
    file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_rows(file, [["football"], present, []], [[], absent, []])
    fields = ["--present-field", "right", "--absent-field", "wrong"]
    result = setrnn("predict", model, file, "--out", out, *fields)
    assert result.code == 1
    assert len(result.error_lines) == 1
    assert said in result.error_lines[0]
    assert not out.exists()
    result = setrnn("predict", model, file, "--out", out, "--on-bad-row", "skip", *fields)
    assert result.code == 0, result.err
    assert [row["id"] for row in read_rows(out)] == ["in-1", "in-3"]


def test_more_present_labels_than_the_model_can_emit_are_one_line(setrnn, taggers, tmp_path):
    model, file = tmp_path / "model", tmp_path / "in.jsonl"
    tagger = taggers["set-rnn"]
    settings = replace(tagger.config.model, max_labels=1)
    replace(tagger, config=replace(tagger.config, model=settings)).save(model)
    write_rows(file, [[], ["football", "markets"], []], [[], [], []])
    arguments = ["--out", tmp_path / "out.jsonl", "--present-field", "right"]
    result = setrnn("predict", model, file, *arguments)
    assert result.code == 1
    assert "line 2: 2 labels are present, but the model's sets have at most 1" in result.err


@pytest.mark.parametrize(
    ("data", "arguments", "said"),
    [
        ("in.jsonl", ["--present-field", "right", "--rule", "sequence"], "one by one"),
        ("in.jsonl", ["--present-field", "right", "--absent-field", "right"], "Name two fields"),
        ("newsroom", ["--present-field", "right"], "newsroom (newsroom) has no fields"),
        ("in.csv", ["--present-field", "rihgt"], "Did you mean 'right'?"),
    ],
)
def test_wrong_fields_are_one_line(setrnn, model, tmp_path, monkeypatch, data, arguments, said):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "in.jsonl")
    write_table(tmp_path / "in.csv")
    result = setrnn("predict", model, data, "--out", "out.jsonl", *arguments)
    assert result.code == 1
    assert len(result.error_lines) == 1
    assert said in result.error_lines[0]


def test_known_labels_are_not_completed_by_another_rule(setrnn, taggers, tmp_path):
    taggers["set-rnn"].save(tmp_path / "model")
    write_rows(tmp_path / "in.jsonl")
    arguments = ["--out", "-", "--present-field", "right", "--rule", "sequence"]
    result = setrnn("predict", tmp_path / "model", tmp_path / "in.jsonl", *arguments)
    assert result.code == 1
    assert "not by rule 'sequence'" in result.err


def test_a_field_that_no_row_has_is_warned_of(setrnn, model, tmp_path):
    write_rows(tmp_path / "in.jsonl")
    arguments = ["--out", "-", "--present-field", "rihgt"]
    result = setrnn("predict", model, tmp_path / "in.jsonl", *arguments)
    assert result.code == 0
    assert "No row has a known label" in result.err


@pytest.mark.parametrize("limit", [["--require", "football"], ["--max-labels", 2], ["--only-seen"]])
def test_limits_do_not_go_with_known_labels(setrnn, model, tmp_path, limit):
    """They would be ignored otherwise."""
    write_rows(tmp_path / "in.jsonl")
    arguments = ("--out", "-", "--present-field", "right", *limit)
    found = setrnn("predict", model, tmp_path / "in.jsonl", *arguments)
    assert found.code == 1
    assert "exclude limits" in found.err
    assert len(found.err.strip().splitlines()) == 1
