"""A model is updated with new documents and labels."""

from dataclasses import replace

import numpy as np
import pytest

import setrnn
from notes import collected_notes
from setrnn.config import Config, TrainingSettings
from setrnn.data.read import write_examples
from setrnn.errors import ConfigError
from setrnn.tagging.learn.update import choose_schedule, read_training_changes, update
from setrnn.tagging.trust import Calibration
from setrnn.tagging.trust.acceptance import Acceptance

QUICK = {"training.epochs": 4}
NEW_LABEL = "curling"


@pytest.fixture(scope="module")
def place(small_examples, tmp_path_factory):
    """Old documents in a folder with train and valid, and new ones with a new label."""
    folder = tmp_path_factory.mktemp("update")
    (folder / "old").mkdir()
    for part in ("train", "valid"):
        write_examples(small_examples[part], folder / "old" / f"{part}.jsonl")
    first = small_examples["train"][0]
    new = [
        setrnn.Example(f"n{n}", f"The curling team of Castrona {n} won the stones", ["sport"])
        for n in range(39)
    ]
    new = [replace(each, labels=("sport", NEW_LABEL)) for each in new]
    write_examples([*new, replace(first, labels=(NEW_LABEL,))], folder / "new.jsonl")
    known = small_examples["test"][:25]
    write_examples(known, folder / "known.jsonl")
    return folder


def run(model, place, **more):
    """Update, and return the model and the notes that were logged."""
    more = {"data": place / "old", "settings": QUICK, "device": "cpu"} | more
    new = more.pop("new", place / "new.jsonl")
    with collected_notes() as notes:
        return update(model, new, **more), notes


def bytes_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def updated(taggers, place, tmp_path_factory):
    """A network in a folder, and the same updated."""
    folder = tmp_path_factory.mktemp("models")
    accepted = Acceptance("f1", 0.8, 0.9, 0.5, 0.5, 0.9, 100)
    before = replace(
        taggers["set-rnn-exact"],
        calibration=Calibration(100, acceptance={"f1": accepted}),
        rule="f1",
        notes={"data": "news", "trained": "2026-01-01T00:00:00+00:00"},
    )
    before.save(folder / "before")
    kept = bytes_of(folder / "before")
    after, notes = run(folder / "before", place, out=folder / "after")
    assert bytes_of(folder / "before") == kept
    return folder, after, notes


def test_new_labels_are_added_and_learned(updated, taggers):
    _, after, notes = updated
    before = taggers["set-rnn-exact"]
    assert after.labels.names == (*before.labels.names, NEW_LABEL)
    assert any(NEW_LABEL in each for each in notes.texts)
    assert NEW_LABEL in after.tag(["The curling team won the stones"])[0].labels


def test_it_reports_measures_before_and_after(updated):
    _, after, _ = updated
    found = after.notes["updated"]
    assert found["from"] == "before"
    assert found["n_replaced"] == 1
    assert found["n_old"] == {"train": 299, "valid": 60}
    scores = found["scores"]
    assert set(scores) == {"old", "new"}
    assert scores["new"]["after"]["instance_f1"] > scores["new"]["before"]["instance_f1"]
    assert scores["old"]["before"]["share_trained_on"] == 0
    assert scores["old"]["after"]["instance_f1"] > scores["old"]["before"]["instance_f1"] - 0.1


def test_the_folder_is_whole(updated):
    folder, after, _ = updated
    loaded = setrnn.load(folder / "after", "cpu")
    assert loaded.rule == "f1"
    # The settings of the training stay, so that the next update starts from them.
    assert loaded.config.training.epochs == setrnn.load(folder / "before").config.training.epochs
    card = (folder / "after" / "README.md").read_text()
    assert "before" in card
    assert "2026-01-01" in card
    assert NEW_LABEL in card


def test_all_training_documents_are_recognised(updated, place):
    _, after, _ = updated
    old = setrnn.evaluate(after, place / "old", split="train")
    assert old.share_trained_on > 0.99
    assert setrnn.evaluate(after, place / "old", split="valid").share_trained_on < 0.05


def test_an_updated_model_can_be_updated(updated, place):
    folder, first, _ = updated
    second, _ = run(folder / "after", place, new=place / "known.jsonl")
    assert second.labels.names == first.labels.names
    assert second.notes["updated"]["n_updates"] == 2


def test_without_old_documents_it_warns_and_remembers(updated, place):
    folder, _, _ = updated
    after, notes = run(folder / "before", place, data=None)
    assert any("--data" in each for each in notes.warnings)
    assert set(after.notes["updated"]["scores"]) == {"new"}
    # The words stay, so that old documents are still recognised.
    assert after.encoder.is_same(setrnn.load(folder / "before").encoder)
    assert setrnn.evaluate(after, place / "old", split="train").share_trained_on > 0.9
    assert not after.is_calibrated  # there are too few documents


def test_every_member_of_a_mixture_is_updated(taggers, place, tmp_path):
    before = taggers["mixture"]
    after, _ = run(before, place, out=tmp_path / "after")
    assert NEW_LABEL in after.labels.names
    assert after.notes["mixture"]["n_documents"] == 60 + after.notes["updated"]["n_new"]["valid"]
    assert len(after.notes["mixture"]["members"]) == len(before.members)
    text = ["The curling team won the storm"]
    loaded = setrnn.load(tmp_path / "after", "cpu")
    assert np.array_equal(loaded.predict_proba(text), after.predict_proba(text))


def test_classical_members_need_old_documents_for_new_labels(taggers, place):
    before = taggers["mixture"]  # br, pcc and set-rnn
    after, notes = run(before, place, data=None)
    assert [each.method for each in after.members] == ["set-rnn"]
    assert sum("left out" in each for each in notes.texts) == 2
    after, notes = run(before, place, data=None, new=place / "known.jsonl")
    assert {each.method for each in after.members} >= {"set-rnn"}
    assert sum("stays" in each for each in notes.texts) == 2


def test_a_classical_model_is_fitted_again_or_refused(taggers, place):
    after, _ = run(taggers["br"], place)
    assert NEW_LABEL in after.tag(["The curling team won the stones"])[0].labels
    with pytest.raises(ConfigError, match="--data"):
        run(taggers["br"], place, data=None)


def test_settings_of_the_user_win_over_the_shorter_schedule():
    config = Config(training=TrainingSettings(epochs=20, batch_size=64, learning_rate=0.004))
    training = choose_schedule(config, read_training_changes({"training.batch_size": 8})).training
    assert training.batch_size == 8
    assert training.epochs < 20
    assert training.learning_rate < 0.004
