import re
from dataclasses import replace
from itertools import islice

import pytest

from setrnn import load
from setrnn.cli import demo
from setrnn.data import newsroom
from setrnn.errors import StoppedError
from setrnn.tagging.learn.data import read_settings

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
            "members_held_out": [0.7],
            "weights": [1.0],
        }
    },
    "log_likelihood": {"members": [-1.0], "mixture": -1.0},
}


@pytest.fixture
def quick_demo(monkeypatch, br_model):
    """The demo on few documents, with a model that is there already instead of training."""
    asked = []

    def train(data, *, out, settings, **options):
        asked.append((data, options))
        read_settings("default", None, settings, None, None)
        tagger = load(br_model)
        notes = {**tagger.notes, "mixture": MIXTURE}
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
    monkeypatch.chdir(tmp_path)
    first = setrnn("demo")
    assert first.code == 0, first.err
    assert "\x1b" not in first.out, "no colour without a terminal"
    page = tmp_path / "demo" / demo.PAGE
    story = " ".join(first.out.split())
    for word in ("SYNTHETIC", "labels per document", "held out", "0.778", "label-f1"):
        assert word in story
    for kind in (demo.EASY, demo.UNCERTAIN, demo.WRONG):
        assert story.count(kind.capitalize()) == 1
    assert story.count("predicted true") == 3
    n_right = int(re.search(r"Accepted predictions: (\d+)", story)[1])
    assert 0 < n_right < N_TEST
    for command in ("serve", "predict", "explain"):
        assert f"{command} demo/model" in story
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
