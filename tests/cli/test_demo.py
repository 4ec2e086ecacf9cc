import re
from dataclasses import replace
from itertools import islice

import pytest

from setrnn import load
from setrnn.cli import demo
from setrnn.data import newsroom
from setrnn.errors import StoppedError
from setrnn.tagging.learn.data import read_settings
from setrnn.tagging.tagger import Tagger

N_TEST = 150
# As of a mixture of one system.
MIXTURE = {
    "n_documents": 60,
    "members": ["br"],
    "weights": [1.0],
    "rules": {
        "f1": {
            "measure": "instance_f1",
            "members": [0.8],
            "mixture": 0.8,
            "held_out": 0.7777,
            "weights": [1.0],
        }
    },
    "log_likelihood": {"members": [-1.0], "mixture": -1.0},
}
AUTOMATIC = {
    "measure": "instance_f1",
    "rule": "f1",
    "minutes": 1,
    "members": [],
    "left_out": {"pcc": "no time was left"},
    "better": ["More time"],
}


@pytest.fixture
def quick_demo(monkeypatch, br_model):
    """The demo on few documents, with a model that is there already instead of training."""
    asked = []

    def train(data, *, out, settings, **options):
        asked.append((data, options))
        read_settings("default", None, settings, None, None)
        tagger = load(br_model)
        notes = {**tagger.notes, "mixture": MIXTURE, "automatic": AUTOMATIC}
        return replace(tagger, notes=notes, rule="f1").saved_to(out)

    few = {split: list(islice(newsroom.examples(split), N_TEST)) for split in ("train", "test")}
    few["valid"] = few["train"]
    monkeypatch.setattr("setrnn.train", train)
    monkeypatch.setattr(demo, "TARGET", 0.5)  # which the model reaches
    monkeypatch.setattr("setrnn.data.newsroom.examples", lambda split: iter(few[split]))
    return asked


def test_the_demo_tells_the_whole_story_and_the_same_again_at_once(
    setrnn, tmp_path, monkeypatch, quick_demo
):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    shown, tag = [], Tagger.tag_with_marginals

    def note_and_tag(self, documents, *options):
        shown.extend((text, tuple(features)) for text, features in documents)
        return tag(self, documents, *options)

    monkeypatch.setattr(Tagger, "tag_with_marginals", note_and_tag)
    first = setrnn("demo")
    assert first.code == 0, first.err
    assert "\x1b" not in first.out, "no colour without a terminal"
    page = tmp_path / "demo" / demo.PAGE
    lines = [line for line in first.out.splitlines() if str(page) not in line]
    assert max(map(len, lines)) <= 80 < len(lines)
    story = " ".join(first.out.split())
    for word in (
        "SYNTHETIC",
        "labels are below another",
        "held out",
        "0.778",
        "pcc (no time",
        "by rule label-f1",
    ):
        assert word in story
    for kind in (demo.EASY, demo.UNCERTAIN, demo.WRONG):
        assert story.count(kind.capitalize()) == 1
    assert story.count("predicted true") == 3
    documents = {(each.text, each.features) for each in newsroom.examples("test")}
    assert len(shown) == 4, "three documents, and one that is explained"
    assert set(shown) <= documents, "as they are measured, with their features"
    accepted = re.search(r"(\d+) of (\d+) documents are accepted, and (\d+)", story)
    n_accepted, n, n_right = map(int, accepted.groups())
    assert 0 < n_right <= n_accepted < n == N_TEST
    for command in ("serve", "predict", "explain"):
        assert f"{command} demo/model" in story
    assert "compare newsroom --quick" in story
    assert str(page) in story
    assert not re.search(r"(src|href)=[\"']?(http|/|\.)", page.read_text()), "one file"
    again = setrnn("demo")
    assert again.out == first.out
    assert len(quick_demo) == 1, "it trains once"


def test_a_stopped_demo_continues(setrnn, tmp_path, monkeypatch, quick_demo):
    out, plan = tmp_path / "demo", tmp_path / "demo" / "model.run" / "plan.json"

    def stop(*_, **options):
        assert options["resume"]
        plan.parent.mkdir(parents=True)
        plan.touch()
        raise StoppedError("Stopped. Resume with --resume.")

    with monkeypatch.context() as patch:
        patch.setattr("setrnn.train", stop)
        result = setrnn("demo", "--out", out)
    assert result.code == 130
    assert "same command" in result.err
    assert "--resume" not in result.err
    assert setrnn("demo", "--out", out).code == 0
    assert quick_demo[0][1]["resume"]
