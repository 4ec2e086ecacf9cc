"""`setrnn train` without a method, as from a shell."""

import json

import pytest

from setrnn.training.speed import Speed

QUICK = [
    f"--set={each}"
    for each in ("classical.max_steps=5", "classical.max_pairs=0", "vectors.source=none")
]


@pytest.fixture
def no_time(monkeypatch):
    slow = Speed(training=1e6, predicting=1.0)
    monkeypatch.setattr("setrnn.tagging.learn.member_training.measure_speed", lambda *_: slow)


def test_it_says_what_it_tried_what_it_chose_and_what_would_help(setrnn, corpus, tmp_path, no_time):
    out = tmp_path / "m"
    options = ("--out", out, "--budget", 5, "--measure", "label-f1", "--device", "cpu", *QUICK)
    ended = setrnn("train", corpus, *options)
    assert ended.code == 0, ended.err
    assert all(each in ended.out for each in ("br-support", "pcc", "mixture", "held out"))
    for word in ("Left out: ", "Chosen by label-F1", "--budget 15", "A GPU"):
        assert word in ended.err
    assert ended.err.count("set-rnn-exact-2") == 1, "each thing is said once"
    assert "Weights" not in ended.out, "setrnn mix shows them"
    config = json.loads((out / "config.json").read_text())
    assert config["rule"] == "label-f1"
    assert (out / "README.md").read_text().startswith("<!--")
    again = setrnn("train", corpus, *options)
    assert again.code == 0, "a model that was written may be replaced"


def test_a_measure_that_does_not_exist_is_refused_with_the_nearest(setrnn, corpus, tmp_path):
    ended = setrnn("train", corpus, "--out", tmp_path / "m", "--measure", "instance-f2")
    assert ended.code == 1
    assert "instance-f1" in ended.err
