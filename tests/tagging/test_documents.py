"""Were the documents trained on?"""

from dataclasses import replace
from itertools import islice

import pytest

from setrnn.data import newsroom
from setrnn.data.cache import Source
from setrnn.data.formats.write import write_examples
from setrnn.progress import Note
from setrnn.tagging.calibrating import calibrate
from setrnn.tagging.documents import open_unseen
from setrnn.tagging.evaluation import evaluate
from setrnn.tagging.mixing import join, mix
from setrnn.tagging.opening import make_source, open_training_data
from setrnn.tagging.tagger import load
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


def collect_notes(notes):
    return lambda event: notes.append(event) if isinstance(event, Note) else None


def texts_of(notes):
    return [each.text for each in notes if each.is_warning]


def count_documents(tagger, documents):
    return sum(len(labels) for _, labels in documents.batches(tagger))


def test_the_file_that_valid_was_cut_from_calibrates_with_that_part(cut_tagger, one_file):
    notes = []
    calibrated = calibrate(cut_tagger, one_file, on_progress=collect_notes(notes))
    assert calibrated.calibration.n_documents == 105  # a quarter of 420
    assert not texts_of(notes)
    assert any("cut off" in each.text for each in notes)
    for data in (Source(str(one_file)), one_file.parent / "both"):
        documents = open_unseen(cut_tagger, data, None, collect_notes(notes))
        assert (documents.split, count_documents(cut_tagger, documents)) == ("valid", 105)


def test_new_documents_are_all_used(cut_tagger, one_file):
    notes = []
    file = one_file.parent / "both/test.jsonl"
    documents = open_unseen(cut_tagger, file, None, collect_notes(notes))
    assert count_documents(cut_tagger, documents) == 60
    evaluate(cut_tagger, file, on_progress=collect_notes(notes))
    assert not notes


def test_a_model_that_was_trained_on_the_whole_file_warns(taggers, small_examples, tmp_path):
    file = tmp_path / "all.jsonl"
    write_examples(small_examples["train"][:40], file)
    for name in ("br", "mixture"):
        notes = []
        count_documents(taggers[name], open_unseen(taggers[name], file, None, collect_notes(notes)))
        assert "trained on about 100%" in " ".join(texts_of(notes))
    notes = []
    mix([taggers["br"], taggers["br-support"]], file, on_progress=collect_notes(notes))
    assert "trained on about 100%" in " ".join(texts_of(notes))


def test_evaluation_on_training_documents_warns(taggers, small_prepared, small_examples):
    for data in (small_examples["train"], iter(small_examples["train"])):
        notes = []
        evaluate(taggers["br"], data, on_progress=collect_notes(notes))
        assert "trained on about 100%" in " ".join(texts_of(notes))
    notes = []
    evaluate(taggers["br"], small_prepared, split="train", on_progress=collect_notes(notes))
    evaluate(taggers["br"], small_prepared, on_progress=collect_notes(notes))
    assert len(texts_of(notes)) == 1


def test_a_mixture_knows_the_documents_of_every_member(cut_tagger, taggers, small_examples):
    both = join([taggers["br"], cut_tagger])  # two vocabularies
    assert len(both.trained_documents) == 2
    notes = []
    seen = small_examples["valid"]  # three quarters, by one member
    evaluate(both, seen, on_progress=collect_notes(notes))
    assert len(texts_of(notes)) == 1
