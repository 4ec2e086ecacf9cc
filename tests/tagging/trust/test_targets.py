"""The acceptance of a model survives that it is trained again."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import setrnn
from setrnn.data import newsroom
from setrnn.data.read import write_examples
from setrnn.progress import Note
from setrnn.tagging.trust.acceptance import Acceptance
from setrnn.tagging.trust.saved import Calibration
from setrnn.tagging.trust.targets import keep_targets

TARGET = 0.35


def write_news(folder, n_valid):
    for split, size in {"train": 200, "valid": n_valid}.items():
        write_examples(islice(newsroom.examples(split), size), folder / f"{split}.jsonl")
    return folder


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    return write_news(tmp_path_factory.mktemp("news"), 150)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """The same, with too few valid documents to calibrate on."""
    return write_news(tmp_path_factory.mktemp("few"), 30)


@pytest.fixture(scope="module")
def accepting(news, tmp_path_factory):
    """A model with an acceptance, and its folder; it is trained again in place."""
    out = tmp_path_factory.mktemp("model") / "model"
    tagger = setrnn.train(news, "br", out=out)
    found = setrnn.calibrate(tagger, news, target=TARGET, confidence=0.8)
    found.tagger.save_calibration(out)
    return out


def collect(notes):
    return lambda event: notes.append(event) if isinstance(event, Note) else None


def join(notes, only_warnings=False):
    return " ".join(each.text for each in notes if each.is_warning or not only_warnings)


def test_training_into_the_same_folder_keeps_the_target(accepting, news, few):
    before = setrnn.load(accepting).calibration.acceptance["f1"]
    notes = []
    tagger = setrnn.train(news, "br-support", out=accepting, on_progress=collect(notes))
    for each in (tagger, setrnn.load(accepting)):
        kept = each.calibration.acceptance["f1"]
        assert (kept.target, kept.confidence) == (before.target, before.confidence) == (TARGET, 0.8)
        assert kept.threshold not in (None, before.threshold)
        assert each.label_acceptance.target == TARGET
    assert f"target accuracy {TARGET:g}" in join(notes)
    again = setrnn.calibrate(tagger, news, target=TARGET, confidence=0.8)
    assert again.acceptance == kept, "as if it was calibrated by hand"

    # Nothing can be fitted: nothing is accepted, and the target is not forgotten.
    notes = []
    tagger = setrnn.train(few, "br", out=accepting, on_progress=collect(notes))
    assert "no prediction is accepted until" in join(notes, only_warnings=True)
    assert not tagger.is_calibrated
    for each in (tagger, setrnn.load(accepting)):
        assert [found.accepted for found in each.tag(["The cup final."], "f1")] == [False]
    assert "none until the model is calibrated" in (accepting / "README.md").read_text()
    assert setrnn.train(news, "br", out=accepting).calibration.acceptance["f1"].target == TARGET


def test_a_mixture_and_the_best_model_keep_the_target(accepting, news):
    members = [setrnn.train(news, method) for method in ("br", "br-support")]
    notes = []
    mixed = setrnn.mix(members, news, out=accepting, on_progress=collect(notes))
    assert mixed.calibration.acceptance["f1"].target == TARGET
    assert f"target accuracy {TARGET:g}" in join(notes)
    quick = ["classical.max_steps=5", "training.epochs=1", "classical.max_pairs=0"]
    tagger = setrnn.train(news, out=accepting, budget=0.01, device="cpu", settings=quick)
    assert tagger.method == "mixture"
    assert setrnn.load(accepting).calibration.acceptance["f1"].target == TARGET


def test_a_rule_that_the_new_model_cannot_use_is_said_to_be_gone(taggers):
    acceptance = Acceptance("sequence", 0.9, 0.9, 0.5, 0.4, 0.95, 40)
    kept = Calibration(100, acceptance={"sequence": acceptance})
    notes = []
    tagger = keep_targets(taggers["br"], kept, collect(notes))
    assert "sequence" in join(notes, only_warnings=True)
    assert "gone" in join(notes)
    assert not tagger.calibration.acceptance
    tagger = keep_targets(taggers["seq2seq-rnn"], kept)
    assert tagger.calibration.acceptance["sequence"].threshold is None
    assert not tagger.is_calibrated


def test_a_model_without_acceptance_has_nothing_to_keep(taggers, tmp_path):
    for before in (None, Calibration(100), tmp_path):
        assert keep_targets(taggers["br"], before) is taggers["br"]
    folder = tmp_path / "model"
    replace(taggers["br"], calibration=Calibration(100)).save(folder)
    (folder / "calibration.json").write_text("{")
    assert keep_targets(taggers["br"], folder) is taggers["br"]


def test_a_model_that_waits_for_its_calibration_tags_by_its_own_probabilities(taggers, test_texts):
    acceptance = Acceptance("set", 0.9, 0.9, 0.5, 0.4, 0.95, 40)
    kept = Calibration(100, acceptance={"set": acceptance})
    tagger = keep_targets(taggers["br"], kept)
    own = taggers["br"].tag(test_texts, "set", top=2)
    waiting = tagger.tag(test_texts, "set", top=2)
    assert [replace(each, accepted=None) for each in waiting] == own
    assert not np.any([each.accepted for each in waiting])
