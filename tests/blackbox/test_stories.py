"""Commands one after the other, as a user gives them."""

import json

import pytest

from json_lines import read_rows
from setrnn.tagging.tagger import load
from small_taggers import SMALL_OVERRIDES

SMALL = " ".join(f"--set {each}" for each in (*SMALL_OVERRIDES, "training.epochs=2"))
NETWORK = f"{SMALL} --device cpu"
FILES = {"README.md", "config.json", "labels.json", "model.safetensors", "tokenizer.json"}
MEASURES = ("label_f1", "instance_f1", "micro_f1", "hamming_loss", "subset_accuracy")


def read(file):
    return json.loads(file.read_text())


def test_train_calibrate_predict_evaluate_and_show_agree(run, world):
    ended = run("train data --method br --out news")
    assert "Calibrated on the 120 valid documents" in ended.err
    assert {file.name for file in (world / "news").iterdir()} == {*FILES, "calibration.json"}
    before = (world / "news/model.safetensors").read_bytes()
    run("calibrate news data --target-accuracy 0.3 --json found.json")
    assert (world / "news/model.safetensors").read_bytes() == before
    accepted = read(world / "found.json")["acceptance"]
    run("predict news data --out rows.jsonl")
    rows = read_rows(world / "rows.jsonl")
    for row in rows:
        assert row["accepted"] == (row["probability"] >= accepted["threshold"])
    run("evaluate news data --json scores.json")
    scores = read(world / "scores.json")
    assert scores["n_documents"] == len(rows) == 40
    assert scores["n_accepted"] == sum(row["accepted"] for row in rows) > 0
    assert all(0 <= scores[name] <= 1 for name in MEASURES)
    assert scores["instance_f1"] > 0.4, "the same set for every document comes to 0.13"
    shown = run("show news --json card.json")
    card = read(world / "card.json")
    assert (card["method"], card["notes"]["n_documents"]) == ("br", 300)
    assert card["calibration"]["acceptance"]["f1"]["threshold"] == accepted["threshold"]
    assert shown.out == (world / "news/README.md").read_text().partition("\n")[2]
    run("predict news data --raw --out raw.jsonl")
    raw = read_rows(world / "raw.jsonl")
    assert [row["labels"] for row in raw] == [row["labels"] for row in rows]
    assert [row["probability"] for row in raw] != [row["probability"] for row in rows]


def test_a_prepared_folder_gives_the_same_model_and_measures(run, world):
    prepared = run("data prepare data --set vectors.source=none").out.strip()
    assert run("data prepare data --set vectors.source=none").out.strip() == prepared, (
        "it is found again"
    )
    run(f"train {prepared} --method br --out other")
    weights = [world / name / "model.safetensors" for name in ("model", "other")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    found = []
    for data in ("data", prepared):
        run(f"evaluate model {data} --json scores.json")
        found.append({name: read(world / "scores.json")[name] for name in MEASURES})
    assert found[0] == found[1]
    assert "as they were written" in run(f"data info {prepared}").err
    file = world / prepared / "train" / "ids.bin"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    for line in (f"data info {prepared}", f"train {prepared} --method br --out m"):
        (said,) = run(line, code=1).error_lines
        assert "train/ids.bin" in said
        assert "setrnn data prepare DATA" in said


def test_training_without_a_method_says_what_it_tried_and_chose(run, world):
    quick = "--set classical.max_steps=5 --set classical.max_pairs=0 --set vectors.source=none"
    ended = run(f"train data --out best --budget 0.02 --measure label-f1 --device cpu {quick}")
    assert "held out" in ended.out
    for words in ("Left out: ", "Chosen by label-F1"):
        assert words in ended.err
    assert read(world / "best/config.json")["rule"] == "label-f1"


@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_part_is_set_aside_and_said_unless_all_is_wanted(run, world, all_of_it):
    more = " --no-valid" if all_of_it else ""
    ended = run(f"train data/train.jsonl --method br --out m{more}")
    assert ("set aside" in ended.err) != all_of_it
    n_documents = read(world / "m/config.json")["notes"]["n_documents"]
    assert n_documents == (300 if all_of_it else 225)


def test_a_mixture_is_used_like_any_other_model(run, world):
    run("mix pcc set-rnn --data data --out mixed")
    run("evaluate mixed data --json scores.json")
    assert read(world / "scores.json")["method"] == "mixture"
    run("predict mixed data --out rows.jsonl")
    assert len(read_rows(world / "rows.jsonl")) == 40
    run("show mixed --json card.json")
    weights = read(world / "card.json")["notes"]["mixture"]["rules"]["f1"]["weights"]
    assert sum(weights) == pytest.approx(1)


def test_a_student_is_measured_on_valid_and_used(run, world):
    line = "distil br data --out student --unlabelled few.jsonl --method sigmoid"
    ended = run(f"{line} {NETWORK}")
    assert "On the valid part" in ended.out
    assert "20 without" in (world / "student/README.md").read_text()
    run("evaluate student data")


def test_an_update_adds_labels_and_keeps_the_old_ones(run, world):
    rows = [f"q{n},The curling team {n} won,sport;curling" for n in range(30)]
    (world / "new.csv").write_text("\n".join(["id,text,labels", *rows]))
    ended = run("update br new.csv --data data --out newer")
    for words in ("old", "new", "before", "after", "instance-"):
        assert words in ended.out
    labels = read(world / "newer/labels.json")["labels"]
    assert labels == [*read(world / "br/labels.json")["labels"], "curling"]
    run("show newer --json card.json")
    assert read(world / "card.json")["notes"]["updated"]["new_labels"] == ["curling"]


def test_models_are_pushed_to_folders_and_the_hub_and_used_from_there(run, world, hub):
    run("push br copy")
    run("push copy hub:me/news --private")
    shown = [run(f"show {place}").out for place in ("br", "copy", "hub:me/news")]
    assert shown[0] == shown[1] == shown[2]
    run("push br pcc shared/")
    assert {place.name for place in (world / "shared").iterdir()} == {"br", "pcc"}


def test_chosen_documents_are_tagged_and_keep_their_columns(run, world):
    run("data choose br exports/beta.csv --text-field title --id-field show_id --n 5 --out n.csv")
    header, *rows = (world / "n.csv").read_text().splitlines()
    assert header.startswith("show_id,title,description,listed_in,predicted_labels,probability")
    assert len(rows) >= 5


def test_a_comparison_leaves_records_models_and_a_page_and_is_continued(run, world):
    (world / "mine.jsonl").write_text('{"labels": []}\n' * 40)
    line = "compare data --methods br --out c --add mine=mine.jsonl --set vectors.source=none"
    line += " --set classical.max_pairs=0 --device cpu"
    ended = run(line)
    assert "br" in ended.out
    assert "mine" in ended.out
    record = world / "c/runs/br-0.json"
    before = record.stat().st_mtime_ns
    assert load(world / "c/models/br-0").tag(["a cup final"])
    assert "br" in (world / "c/report/index.html").read_text()
    run(line)
    assert record.stat().st_mtime_ns == before
    run("report c --out there")
    assert "br" in read(world / "there/summary.json")["scores"]


def test_several_processes_write_the_parts_that_are_missing(run, world):
    line = "predict br data --workers 2 --chunk-rows 15 --out parts/"
    assert "40 documents in 3 files" in run(line).err
    run("predict br data --out rows.jsonl")
    parts = sorted((world / "parts").glob("*.jsonl"))
    assert [row for part in parts for row in read_rows(part)] == read_rows(world / "rows.jsonl")
