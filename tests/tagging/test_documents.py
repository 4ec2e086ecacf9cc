"""Documents that a model was trained on are recognised: refused, or measured with a warning."""

import json
from dataclasses import replace
from functools import partial
from itertools import islice

import pytest

from setrnn.data import newsroom
from setrnn.data.cache import prepare
from setrnn.data.example import Example, join_hashes
from setrnn.data.read import BadRows, open_dataset, read_hierarchy
from setrnn.data.read.write import write_examples
from setrnn.data.source import Source
from setrnn.errors import DataError
from setrnn.progress import ignore_progress
from setrnn.tagging.documents import example_batches, open_unseen
from setrnn.tagging.evaluate import evaluate
from setrnn.tagging.learn.data import make_source, open_training_data
from setrnn.tagging.learn.mix import join, mix
from setrnn.tagging.learn.train import train
from setrnn.tagging.tagger import load
from setrnn.tagging.trust.calibrate import calibrate
from small_taggers import SMALL, trained_tagger


@pytest.fixture(scope="module")
def one_file(tmp_path_factory, small_examples):
    """One file, and a folder with train and test: neither has a valid part."""
    folder = tmp_path_factory.mktemp("one")
    unseen = list(islice(newsroom.examples("test"), 60, 120))
    rows = [*small_examples["train"], *small_examples["valid"], *small_examples["test"]]
    for name in ("news.jsonl", "both/train.jsonl", "both/test.jsonl"):
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        write_examples(unseen if "test" in name else rows, file)
    return folder / "news.jsonl"


@pytest.fixture(scope="module")
def cut_tagger(one_file, tmp_path_factory):
    """A model that was trained on the file without the valid part cut from it."""
    source = replace(make_source(one_file), cut_valid=True)
    prepared, _ = open_training_data(source, SMALL, folder=tmp_path_factory.mktemp("cache"))
    folder = tmp_path_factory.mktemp("model") / "br"
    trained_tagger(prepared, "br").save(folder)
    return load(folder, device="cpu")


def count_documents(tagger, documents):
    return sum(len(batch.labels) for batch in documents.batches(tagger))


def test_the_file_that_valid_was_cut_from_calibrates_with_that_part(cut_tagger, one_file, notes):
    calibrated = calibrate(cut_tagger, one_file)
    assert calibrated.calibration.n_documents == 105  # a quarter of 420
    assert not notes.warnings
    assert any("cut off" in text for text in notes.texts)
    for data in (Source(str(one_file)), one_file.parent / "both"):
        documents = open_unseen(cut_tagger, data, None, ignore_progress)
        assert (documents.split, count_documents(cut_tagger, documents)) == ("valid", 105)


def test_the_valid_part_is_found_if_labels_were_closed_before_it_was_cut(one_file, notes):
    leaves = one_file.parent / "leaves.jsonl"
    documents = list(open_dataset(one_file).require("train").read(BadRows()))
    upper = {name for above in read_hierarchy("newsroom").parents.values() for name in above}
    write_examples(
        (replace(each, labels=tuple(set(each.labels) - upper)) for each in documents), leaves
    )
    tagger = train(leaves, "br", hierarchy="newsroom", close_labels=True)
    found = open_unseen(tagger, leaves, None, ignore_progress)
    assert count_documents(tagger, found) == 105
    assert any("cut off" in text for text in notes.texts)


def test_new_documents_are_all_used(cut_tagger, one_file, notes):
    file = one_file.parent / "both/test.jsonl"
    documents = open_unseen(cut_tagger, file, None, ignore_progress)
    assert count_documents(cut_tagger, documents) == 60
    evaluate(cut_tagger, file)
    assert not notes.texts


def test_a_file_that_a_model_was_trained_on_is_refused_or_gives_a_warning(
    taggers, small_examples, tmp_path, notes
):
    file = tmp_path / "all.jsonl"
    write_examples(small_examples["train"][:40], file)
    for name in ("br", "mixture"):
        with pytest.raises(DataError, match=r"trained on about 100%.*allow_training_documents"):
            open_unseen(taggers[name], file, None, ignore_progress)
        notes.records.clear()
        documents = open_unseen(taggers[name], file, None, ignore_progress, True)
        assert documents.n_documents == count_documents(taggers[name], documents) == 40
        assert "trained on about 100%" in " ".join(notes.warnings)
    models = [taggers["br"], taggers["br-support"]]
    for use in (calibrate, lambda _, data: mix(models, data)):
        with pytest.raises(DataError, match="trained on about 100%"):
            use(models[0], file)


def test_a_calibration_on_training_documents_says_so(taggers, small_examples, tmp_path):
    """The override left no trace: nobody could see later what the accuracy was promised from."""
    train, new = small_examples["train"], list(islice(newsroom.examples("test"), 60, 180))
    for name in ("br", "mixture"):
        found = calibrate(taggers[name], train, allow_training_documents=True)
        folder = tmp_path / name
        found.tagger.save(folder)
        assert found.as_dict()["calibration"]["share_trained_on"] == 1
        saved = json.loads((folder / "calibration.json").read_text())
        assert saved["share_trained_on"] == 1
        assert load(folder).calibration.share_trained_on == 1
        assert "trained on about 100%" in (folder / "README.md").read_text()
        # A later calibration on new documents removes the warning.
        saved = load(folder)
        again = calibrate(saved, new).tagger.save_calibration(folder)
        assert again.calibration.share_trained_on == 0
        assert "trained on about" not in (folder / "README.md").read_text()
    models = [taggers["br"], taggers["br-support"]]
    mixed = mix(models, train, allow_training_documents=True)
    assert mixed.calibration.share_trained_on == 1


def test_texts_with_other_numbers_and_names_are_new(taggers, small_examples):
    """For the model they are the same: a number is one token, and so is an unknown word."""
    train = [replace(each, text=f"{each.text} qzqzq 4711") for each in small_examples["train"][:40]]
    tagger = taggers["br"]
    hashes = [batch.text_hashes for batch in example_batches(tagger, train)]
    known = replace(tagger, trained_documents=join_hashes(hashes))
    with pytest.raises(DataError, match="trained on about 100%"):
        open_unseen(known, train, None, ignore_progress)
    for old, new in (("4711", "4712"), ("qzqzq", "xzxzx")):
        others = [replace(each, text=each.text.replace(old, new)) for each in train]
        rows = [batch.tokens.values for batch in example_batches(tagger, [train[0], others[0]])]
        assert len(rows[0]) % 2 == 0
        assert (rows[0][: len(rows[0]) // 2] == rows[0][len(rows[0]) // 2 :]).all()
        assert open_unseen(known, others, None, ignore_progress).n_documents == 40


def test_short_texts_that_occur_everywhere_are_no_reason_to_refuse(small_examples, tmp_path):
    """But copies of longer documents are."""
    names = ("Thanks", "Storm", "Budget vote", "Fever", "Final")
    short = [
        Example(f"short-{number}", names[number % 5], ("storm",))
        for number in range(len(names) * 12)
    ]
    train, valid = small_examples["train"], small_examples["valid"]
    parts = {"train": [*train, *short], "valid": [*valid, *short]}
    prepared = prepare(
        {name: partial(iter, rows) for name, rows in parts.items()},
        tmp_path / "prepared",
        "short",
        SMALL.text,
        {},
    )
    tagger = trained_tagger(prepared, "br")
    assert calibrate(tagger, parts["valid"]).calibration.n_documents == 120
    with pytest.raises(DataError, match="trained on about"):
        calibrate(tagger, [*parts["valid"], *train[:20]])


def test_evaluation_on_training_documents_warns(taggers, small_prepared, small_examples, notes):
    train = small_examples["train"]
    for data, split in ((train, None), (iter(train), None), (small_prepared, "train")):
        notes.records.clear()
        evaluate(taggers["br"], data, split=split)
        assert "trained on about 100%" in notes.warnings[0]
    evaluate(taggers["br"], small_prepared)
    assert len(notes.warnings) == 1


def test_a_mixture_knows_the_documents_of_every_member(cut_tagger, taggers, small_examples, notes):
    both = join([taggers["br"], cut_tagger])  # two vocabularies
    assert len(both.encoder.parts) == 2
    evaluate(both, small_examples["valid"])  # one member has seen three quarters
    assert len(notes.warnings) == 1
