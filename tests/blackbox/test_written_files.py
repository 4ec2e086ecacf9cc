"""What commands read and write, from each format to each format."""

import csv
import io
import json
import sys

import pyarrow.parquet as pq
import pytest

from json_lines import read_rows
from setrnn.tagging.tagger import load

TEXTS = ["The cup final was won in extra time", "Shares fell as rates rose", ""]  # texts.jsonl
WRITTEN = {
    "methods": ("Which system is for what",),
    "data info data --json info.json": ("300", "labels per document"),
    "data info exports --text-field title --labels-field listed_in --label-separator , "
    "--write-label-map map.csv": ("Likely twins",),
    "evaluate model data --details --json scores.json": (
        "Which rule is for what",
        "on test of data",
    ),
    "evaluate model data/test.jsonl --rule f1 --json scores.json": ("data/test.jsonl",),
    "evaluate br data --split train --details": (
        "NOT ON NEW DOCUMENTS",
        "Not shown: micro-f1 and label-f1",
    ),
    "evaluate br data --hierarchy newsroom --details": ("With the labels above, in the hierarchy",),
    "evaluate br few.jsonl data/test.jsonl": ("60 documents",),
    "show model --json card.json": ("method: br", "300 documents"),
    "explain set-rnn --text goal --html page.html --json why.json": ("→", "p"),
    "explain br --text goal --html page.html --json why.json": ("for each label", "(left out)"),
    "explain set-rnn --text goal --label football": ("The given set {football}",),
    "explain set-rnn --text goal --rule sequence": ("the set of the best sequence",),
    "calibrate br data --target-accuracy 0.3 --json found.json --figure f.svg": (
        "can be accepted",
    ),
    "calibrate br data --target-accuracy 0.999": ("No prediction is accepted",),
    "mix pcc set-rnn --data data --out mixed": ("pcc", "set-rnn", "mixture", "Weights by rule"),
    "data choose br data --split test --n 5 --out next.jsonl": ("5 documents",),
    "data doubt data --method br --folds 2 --top 5 --out o.csv": ("5 documents",),
    "report compared": ("set-rnn", "instance-F1", "index.html"),
}


@pytest.mark.parametrize("line", WRITTEN)
def test_a_command_prints_and_writes_what_it_says(run, world, line):
    words = line.split()
    ended = run(line)
    assert [said for said in WRITTEN[line] if said not in ended.out + ended.err] == []
    named = (words[at + 1] for at, word in enumerate(words) if word in WRITING)
    for file in named:
        assert (world / file).exists()
        if file.endswith(".json"):
            assert json.loads((world / file).read_text())


WRITING = ("--json", "--html", "--figure", "--out", "--write-label-map")
INPUTS = ("texts.jsonl", "texts.jsonl.gz", "texts.csv", "texts.tsv", "texts.parquet", "texts.json")


@pytest.fixture
def inputs(run, world):
    """The same texts in every format."""
    write_table(world / "texts.csv", ",")
    write_table(world / "texts.tsv", "\t")
    for name in ("texts.jsonl.gz", "texts.parquet", "texts.json"):
        run(f"data convert texts.jsonl {name} --labels-field right")


def write_table(file, delimiter):
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(["text", "right", "wrong"])
        rows = read_rows(file.with_suffix(".jsonl"))
        writer.writerows([row["text"], *map(";".join, known(row))] for row in rows)


def known(row):
    return row["right"], row["wrong"]


def test_every_format_is_tagged_alike_and_as_in_python(run, world, inputs):
    expected = [sorted(each.labels) for each in load(world / "br").tag(TEXTS)]
    for name in INPUTS:
        form = " --format label-studio" if name.endswith(".json") else ""
        rows = list(map(json.loads, run(f"predict br {name}{form}").out.splitlines()))
        assert [sorted(row["labels"]) for row in rows] == expected, name
    assert [row["id"] for row in rows_in(run("predict br texts.csv"))] == [
        *("texts-1", "texts-2", "texts-3")
    ]


def rows_in(ended):
    return list(map(json.loads, ended.out.splitlines()))


LINES = "\n".join(TEXTS[:2])
OBJECTS = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:2])


@pytest.mark.parametrize("content", [LINES, OBJECTS])
def test_standard_input_and_texts_are_tagged(setrnn, run, world, monkeypatch, content):
    expected = [list(each.labels) for each in load(world / "br").tag(TEXTS[:2])]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert [row["labels"] for row in rows_in(run("predict br -"))] == expected
    given = setrnn("predict", "br", "--text", TEXTS[0], "--text", TEXTS[1])
    assert [row["labels"] for row in rows_in(given)] == expected


def test_every_output_holds_the_same_predictions(run, world):
    for name in ("o.jsonl", "o.csv", "o.parquet"):
        run(f"predict model data/test.jsonl --out {name} --top 2 --rule set")
    run("predict model data/test.jsonl --out o.json --rule set")
    rows, given = read_rows(world / "o.jsonl"), read_rows(world / "data/test.jsonl")
    with (world / "o.csv").open(encoding="utf-8-sig", newline="") as stream:
        cells = list(csv.DictReader(stream))
    table = pq.read_table(world / "o.parquet").to_pylist()
    tasks = json.loads((world / "o.json").read_text())
    assert len(rows) == len(given) == len(cells) == len(table) == len(tasks)
    for row, own, cell, values, task in zip(rows, given, cells, table, tasks, strict=True):
        assert row["id"] == own["id"] == cell["id"] == values["id"]
        assert values["text"] == own["text"], "the columns of the input are kept"
        assert values["labels"] == own["labels"]
        assert row["labels"] == values["predicted_labels"]
        assert cell["predicted_labels"] == ";".join(row["labels"])
        assert values["probability"] == row["probability"]
        assert float(cell["probability"]) == round(row["probability"], 4)
        assert row["probability"] >= row["alternatives"][0]["probability"] > 0
        assert row["labels"] != row["alternatives"][0]["labels"]
        assert task["predictions"][0]["score"] == pytest.approx(row["probability"])


def test_a_csv_of_a_spreadsheet_stays_one(run, world):
    for name, mark, delimiter in (
        ("alpha.csv", True, ";"),
        ("beta.csv", False, ","),
        ("beta.csv --csv-dialect excel", True, ","),
        ("alpha.csv --csv-dialect plain", False, ","),
        ("alpha.csv --workers 1", True, ";"),
    ):
        run(f"predict br exports/{name} --text-field title --out o.csv --overwrite")
        assert (world / "o.csv").read_bytes().startswith(b"\xef\xbb\xbf") == mark
        assert b"'=SUM(2)" in (world / "o.csv").read_bytes(), "a formula is not run"
        with (world / "o.csv").open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter=delimiter))
        assert len(rows) == 20
        assert list(rows[0])[:4] == ["id", "show_id", "title", "description"]
    run("data choose br exports/alpha.csv --text-field title --n 2 --out next.csv")
    assert (world / "next.csv").read_bytes().startswith(b"\xef\xbb\xbfid;show_id;title;")


def test_a_label_has_a_column_of_its_own_on_demand(run, world):
    tagger = load(world / "model")
    probs = tagger.predict_proba(TEXTS)
    for more in ("", " --workers 1"):
        run(f"predict model texts.jsonl --out o.csv --overwrite --label-columns probability{more}")
        with (world / "o.csv").open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        for row, own in zip(rows, probs, strict=True):
            found = [float(row[label]) for label in tagger.labels.names]
            assert found == pytest.approx(own.tolist(), abs=6e-5)
            assert all(len(row[label]) <= 6 for label in tagger.labels.names), "four digits"
        run(f"predict model texts.jsonl --out o.parquet --overwrite --label-columns binary{more}")
        for row in pq.read_table(world / "o.parquet").to_pylist():
            predicted = [label for label in tagger.labels.names if row[label]]
            assert sorted(predicted) == sorted(row["labels"])
    for more in ("--out o.jsonl", "--out o/", ""):
        ended = run(f"predict br texts.jsonl --label-columns binary {more}", code=1)
        assert "--label-columns is for a table" in ended.err


@pytest.mark.parametrize("rule", ["set", "sequence", None])
def test_a_rule_is_kept_and_is_the_methods_own_without_one(run, world, rule):
    more = f" --rule {rule}" if rule else ""
    run(f"predict seq2seq-rnn data --out o.jsonl{more} --device cpu")
    rows = read_rows(world / "data/test.jsonl")
    texts, features = [row["text"] for row in rows], [row.get("features", []) for row in rows]
    tagger = load(world / "seq2seq-rnn", "cpu")
    found = tagger.tag(texts, rule=rule or "sequence", features=features)
    for row, expected in zip(read_rows(world / "o.jsonl"), found, strict=True):
        assert row["labels"] == list(expected.labels)
        assert row["probability"] == pytest.approx(expected.probability, rel=1e-4)


def test_limits_are_kept(run, world):
    first, second = load(world / "br").labels.names[:2]
    limits = f"--require {second} --forbid {first} --min-labels 2 --max-labels 3"
    run(f"predict br data --out o.jsonl --rule f1 {limits}")
    for row in read_rows(world / "o.jsonl"):
        assert second in row["labels"]
        assert first not in row["labels"]
        assert 2 <= len(row["labels"]) <= 3
    run("evaluate br data --only-seen --max-labels 1 --json s.json")
    assert json.loads((world / "s.json").read_text())["mean_predicted_set_size"] <= 1


@pytest.mark.parametrize("name", INPUTS[:1] + INPUTS[2:4])
def test_known_labels_are_completed_as_in_python(run, world, inputs, name):
    right, wrong = zip(*map(known, read_rows(world / "texts.jsonl")), strict=True)
    fields = "--present-field right --absent-field wrong"
    run(f"predict pcc {name} --out o.jsonl --overwrite --top 2 {fields}")
    expected = load(world / "pcc").complete(TEXTS, right, wrong, top=2)
    for row, found in zip(read_rows(world / "o.jsonl"), expected, strict=True):
        assert row["labels"] == list(found.labels)
        assert row["added"] == list(found.added)
        assert row["known_probability"] == pytest.approx(found.known_probability)
    said = run("predict pcc texts.jsonl --out o.jsonl --overwrite --present-field rihgt").err
    assert "No row has a known label" in said


def test_bad_rows_are_skipped_and_counted_if_asked(run, world):
    ended = run("predict br bad.jsonl --on-bad-row skip --out o.jsonl")
    assert "1 rows could not be read and were skipped" in ended.err
    assert "bad.jsonl line 2" in ended.err
    assert [row["id"] for row in read_rows(world / "o.jsonl")] == ["bad-1", "bad-3"]


def test_rows_that_were_cut_or_empty_or_unknown_have_notes(setrnn, world):
    texts = ("storm", "x", "storm " * 600)
    rows = rows_in(setrnn("predict", "br", *(f"--text={text}" for text in texts)))
    assert "notes" not in rows[0]
    assert "unknown" in rows[1]["notes"][0]
    assert "500 of its 600" in rows[2]["notes"][0]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_convert_keeps_every_document(run, world, suffix):
    run(f"data convert data there --to {suffix}")
    run("data convert there back")
    for part in ("train", "valid", "test"):
        assert read_rows(world / f"back/{part}.jsonl") == read_rows(world / f"data/{part}.jsonl")


def test_exports_are_joined_with_the_labels_above_theirs(run, world):
    fields = "--text-field title,description --labels-field listed_in --label-separator ,"
    fields += " --id-field show_id"
    (world / "tree.csv").write_text("Football,All\n")
    run(f"data convert exports all.jsonl {fields} --hierarchy tree.csv --close-labels")
    rows = read_rows(world / "all.jsonl")
    assert len(rows) == 60
    assert any({"Football", "All"} <= set(row["labels"]) for row in rows)


def test_split_copies_the_parts_that_are_there(run, world):
    (world / "data/valid.jsonl").unlink()
    run("data split data out --test 0")
    assert read_rows(world / "out/test.jsonl") == read_rows(world / "data/test.jsonl")


def test_split_cuts_every_document_once_and_the_same_with_a_seed(run, world):
    for out in ("a", "b"):
        run(f"data split data/train.jsonl {out} --valid 0.2 --seed 3")
    parts = {name: read_rows(world / f"a/{name}.jsonl") for name in ("train", "valid", "test")}
    assert [len(part) for part in parts.values()] == [210, 60, 30]
    ids = sorted(row["id"] for part in parts.values() for row in part)
    assert ids == sorted(row["id"] for row in read_rows(world / "data/train.jsonl"))
    for name in parts:
        files = [world / f"{out}/{name}.jsonl" for out in ("a", "b")]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_the_columns_of_the_raw_data_are_remembered(run, world):
    columns = "--text-field title,description --labels-field listed_in --id-field show_id"
    run(f"data split exports/alpha.csv parts {columns} --label-separator , --valid 0 --test 0.3")
    kept = json.loads((world / "parts/columns.json").read_text())
    assert kept["text_field"] == "title,description"
    run("train parts --method br --out own")
    assert load(world / "own").notes["columns"] == kept
    explicit = run(f"predict own exports/alpha.csv {columns} --out one.jsonl --label-separator ,")
    assert "Columns as in training" not in explicit.err
    taken = run("predict own exports/alpha.csv --out two.jsonl")
    assert "Columns as in training: --text-field 'title,description'" in taken.err
    assert (world / "one.jsonl").read_bytes() == (world / "two.jsonl").read_bytes()
    assert "Columns" not in run("evaluate own parts").err, "its files have the usual columns"
    run("evaluate own exports/alpha.csv --allow-training-documents")
    run("data choose own exports/beta.csv --n 2 --out next.csv")
    assert (world / "next.csv").read_text().startswith("show_id,title,")
    ended = run("predict own exports/alpha.csv --text-field title --out three.jsonl")
    assert "--text-field" not in ended.err, "an explicit option wins"
    assert (world / "three.jsonl").read_bytes() != (world / "two.jsonl").read_bytes()
    run("update own exports/beta.csv --data parts --out updated")
    assert load(world / "updated").notes["columns"] == kept
    run("train parts --method br-support --out second")
    seen = "--allow-training-documents"
    assert "Columns as in" in run(f"mix own second --data exports/beta.csv --out mixed {seen}").err
    tiny = "--method sigmoid --set vectors.source=none --set training.epochs=1"
    assert "Columns as in" in run(f"distil own exports/alpha.csv --out student {tiny}").err
    assert load(world / "student").notes["columns"] == kept
