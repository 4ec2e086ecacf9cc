"""Thresholds of one's own: a label is predicted where its shown probability reaches them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from setrnn import calibrate, load
from setrnn.data.read import read_thresholds
from setrnn.errors import ConfigError, DataError

RULE = "label-f1"


@pytest.fixture(scope="module", params=["br", "set-rnn", "mixture"])
def calibrated(request, taggers, small_examples):
    """Of the mixture, the rules have weights of their own."""
    documents = [*small_examples["valid"], *small_examples["test"]]
    tagger = taggers[request.param]
    if tagger.members:
        weights = {RULE: np.array([1.0, 0.0, 0.0]), "hamming": np.array([0.0, 0.5, 0.5])}
        weights = replace(tagger.system.weights, by_rule=weights)
        tagger = replace(tagger, system=replace(tagger.system, weights=weights))
    return calibrate(tagger, documents).tagger


def test_a_label_is_predicted_where_its_probability_reaches_its_threshold(calibrated, test_texts):
    names = calibrated.labels.names
    given = dict(zip(names, np.linspace(0.0, 1.0, len(names)).tolist(), strict=True))
    tagger = calibrated.with_thresholds(given)
    found, probs = tagger.tag(test_texts), tagger.predict_proba(test_texts)
    assert np.array_equal(probs, calibrated.predict_proba(test_texts))
    margins = probs - np.array([given[name] for name in names])
    for each, row in zip(found, margins, strict=True):
        sure = {name for name, margin in zip(names, row, strict=True) if margin > 1e-5}
        possible = {name for name, margin in zip(names, row, strict=True) if margin > -1e-5}
        assert sure <= {*each.labels} <= possible
        assert each.accepted is None


def test_other_labels_keep_their_thresholds(calibrated, taggers, test_texts):
    label = calibrated.labels.names[0]
    tagger = calibrated.with_thresholds({label: 1.0})
    before = calibrated.fitted.thresholds.by_label[1:]
    assert np.array_equal(tagger.fitted.thresholds.by_label[1:], before)
    plain = taggers["br"].with_thresholds({label: 0.0})
    pairs = zip(plain.tag(test_texts), plain.predict_proba(test_texts), strict=True)
    for each, row in pairs:
        likely = {plain.labels.names[number] for number in np.flatnonzero(row >= 0.5)}
        assert {*each.labels} == likely | {label}


def test_thresholds_alone_do_not_make_probabilities_calibrated(taggers, tmp_path):
    tagger = taggers["br"].with_thresholds({taggers["br"].labels.names[0]: 0.2})
    tagger.save(tmp_path / "model")
    assert not load(tmp_path / "model").is_calibrated
    assert "temperature" not in (tmp_path / "model" / "README.md").read_text()


@pytest.mark.parametrize("written", ["nan", "1.2", "-1", "much"])
def test_a_file_names_the_line_of_what_is_no_threshold(tmp_path, written):
    file = tmp_path / "own.csv"
    file.write_text(f"label,threshold\nsport,{written}\n")
    with pytest.raises(DataError, match=r"own\.csv.*line 2: .*a number from 0 to 1"):
        read_thresholds(file)


def test_they_are_saved_and_the_command_line_takes_them(setrnn, calibrated, test_texts, tmp_path):
    label = calibrated.labels.names[0]
    file, model, texts = tmp_path / "own.csv", tmp_path / "model", tmp_path / "in.jsonl"
    file.write_text(f"label,threshold\n{label},0\n")
    texts.write_text("".join(json.dumps({"text": each}) + "\n" for each in test_texts[:9]))
    calibrated.save(model)
    tagger = calibrated.with_thresholds(file)
    tagger.save(tmp_path / "own")
    wanted = [list(each.labels) for each in tagger.tag(test_texts[:9])]
    assert [list(each.labels) for each in load(tmp_path / "own").tag(test_texts[:9])] == wanted
    for more in ((), ("--workers", 1)):
        out = tmp_path / f"out{len(more)}.jsonl"
        said = setrnn("predict", model, texts, "--out", out, "--thresholds", file, *more)
        assert said.code == 0, said.err
        assert [json.loads(line)["labels"] for line in out.read_text().splitlines()] == wanted
        assert all(label in row for row in wanted)
    refused = setrnn("predict", model, texts, "--thresholds", file, "--rule", "f1")
    assert refused.code == 1
    assert "--thresholds is for rule label-f1" in refused.err


def test_what_is_no_threshold_is_refused(taggers, tmp_path):
    tagger = taggers["br"]
    label = tagger.labels.names[0]
    with pytest.raises(ConfigError, match="no label 'nothing' to give a threshold"):
        tagger.with_thresholds({"nothing": 0.5})
    for wrong in (-0.1, 1.1, float("nan"), "0.2", None):
        with pytest.raises(ConfigError, match="from 0 to 1"):
            tagger.with_thresholds({label: wrong})
    for content, said in (
        ("a,b\n", "line 1: the threshold must be a number"),
        ("a,.1\na,.2\n", 'line 2: "a" has another threshold'),
        ("label,threshold\n", "names no label"),
    ):
        (tmp_path / "wrong.csv").write_text(content)
        with pytest.raises(DataError, match=said):
            read_thresholds(tmp_path / "wrong.csv")
