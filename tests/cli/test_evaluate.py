"""`setrnn evaluate`."""

import json
from dataclasses import replace

from small_taggers import with_thresholds


def test_labels_the_model_never_saw_count_as_missed_and_are_reported(setrnn, trained, tmp_path):
    file, scores = tmp_path / "new.jsonl", tmp_path / "scores.json"
    file.write_text('{"text": "x", "labels": ["never", "seen"]}\n{"text": "y", "labels": []}\n')
    result = setrnn("evaluate", trained, file, "--json", scores)
    assert result.code == 0
    measures = json.loads(scores.read_text())
    assert measures["n_unseen_labels"] == 2
    assert measures["n_unseen_label_occurrences"] == 2
    assert measures["micro_recall"] == 0
    assert "2 labels that the model never saw" in result.err


def test_all_rules_are_side_by_side_with_what_each_is_for(setrnn, corpus, taggers, tmp_path):
    model, file = tmp_path / "model", tmp_path / "scores.json"
    replace(with_thresholds(taggers["br"]), rule="label-f1").save(model)
    result = setrnn("evaluate", model, corpus, "--details", "--json", file)
    assert result.code == 0, result.err
    values = json.loads(file.read_text())
    assert list(values["rules"]) == ["set", "f1", "hamming", "micro-f1", "label-f1"]
    assert values["instance_f1"] == values["rules"]["label-f1"]["instance_f1"]
    rows = {line.split()[0]: line for line in result.out.splitlines() if line.strip()}
    assert "(own)" in rows["label-f1"]
    for rule, each in values["rules"].items():
        assert f"{each['micro_f1']:.3f}" in rows[rule]
    (sentence,) = [line for line in result.out.splitlines() if "Which rule" in line]
    assert "f1 for instance-F1" in sentence
    assert "predicts by label-f1" in sentence
    one = setrnn("evaluate", model, corpus, "--rule", "f1", "--details", "--json", file)
    assert "Which rule" not in one.out
    assert list(json.loads(file.read_text())["rules"]) == ["f1"]


def test_the_measures_are_said_in_words_and_labels_with_what_is_accepted(setrnn, larger, tmp_path):
    model, file = tmp_path / "model", tmp_path / "scores.json"
    assert setrnn("train", larger, "--method", "br", "--out", model).code == 0
    plain = setrnn("evaluate", model, larger, "--split", "valid", "--json", file).out
    values = json.loads(file.read_text())
    right, found, exact = (
        f"{100 * values[name]:.0f}"
        for name in ("micro_precision", "micro_recall", "subset_accuracy")
    )
    assert (
        f"Of 100 proposed labels {right} are right; of 100 true labels {found} are found; "
        f"{exact} of 100 documents are exactly right." in plain
    )
    assert "accepted" not in plain
    assert setrnn("calibrate", model, larger, "--target-accuracy", "0.5").code == 0
    result = setrnn("evaluate", model, larger, "--split", "valid", "--json", file)
    labels = json.loads(file.read_text())["labels"]
    rows = [line.split() for line in result.out.splitlines()]
    assert any(each["n_accepted"] for each in labels[:10])
    for each in labels[:10]:
        accuracy = each["accepted_accuracy"]
        share = "-" if accuracy is None else f"{accuracy:.3f}"
        counts = [str(each[name]) for name in ("support", "n_predicted", "n_accepted")]
        assert [each["label"], *counts, share] in [row[:5] for row in rows]
    assert "recall" not in result.out
    assert "--details" in result.err
    more = setrnn("evaluate", model, larger, "--split", "valid", "--details")
    assert "recall" in more.out
    assert "Which rule is for what" in more.out
    assert result.out.splitlines()[:3] == more.out.splitlines()[:3]


def test_documents_trained_on_can_be_allowed(setrnn, corpus, trained):
    line = ("evaluate", trained, corpus, "--split", "train", "--allow-training-documents")
    assert "NOT ON NEW" not in setrnn(*line).out
