"""The data that all runs share: its parts, its file, and data that is refused."""

import shutil
from functools import partial

import pytest

from setrnn.comparison.compare import make_comparable, open_comparison, refuse_other_folder
from setrnn.config import TextSettings
from setrnn.data.cache import open_prepared, prepare
from setrnn.data.read import write_examples
from setrnn.data.source import Source
from setrnn.errors import DataError

SETTINGS = TextSettings()


@pytest.fixture
def comparison(small_prepared, tmp_path):
    return open_comparison(tmp_path / "out", small_prepared)


def test_a_comparison_holds_the_test_part_as_prepared(comparison, small_prepared, small_examples):
    test = small_examples["test"]
    assert list(comparison.ids) == [example.id for example in test]
    named = [{comparison.labels[label] for label in row} for row in comparison.truth]
    assert named == [set(example.labels) for example in test]
    n_train = sum(len(example.labels) for example in small_examples["train"])
    assert sum(comparison.label_counts) == n_train
    seen = {frozenset(each.labels) for each in small_examples["train"]}
    unseen = [row for row, each in enumerate(test) if frozenset(each.labels) not in seen]
    assert list(comparison.unseen_sets) == unseen
    lengths = small_prepared.split("test").tokens.lengths
    assert comparison.mean_words["test"] == pytest.approx(lengths.mean(), abs=0.01)


@pytest.mark.usefixtures("comparison")
def test_other_data_of_the_same_sizes_is_refused(small_examples, tmp_path):
    turned = {**small_examples, "test": small_examples["test"][::-1]}
    streams = {name: partial(iter, each) for name, each in turned.items()}
    prepared = prepare(streams, tmp_path / "turned", "newsroom", SETTINGS, {"synthetic": True})
    with pytest.raises(DataError, match="other data"):
        open_comparison(tmp_path / "out", prepared)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("chapter 1")
    with pytest.raises(DataError, match="not a comparison"):
        refuse_other_folder(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.fixture
def data(small_examples, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("train", "test"):
        write_examples(small_examples[split], folder / f"{split}.jsonl")
    return folder


def opened(data, folder, **options):
    return open_prepared(make_comparable(Source(str(data), **options)), SETTINGS, folder)


def test_a_missing_valid_part_is_cut_from_train(data, tmp_path):
    folder = tmp_path / "prepared"
    prepared = opened(data, folder)
    assert prepared.description["n_documents"] == {"train": 225, "valid": 75, "test": 60}
    assert prepared.valid_is_cut
    train, valid = (prepared.split(name) for name in ("train", "valid"))
    assert not set(train.ids(0, 225)) & set(valid.ids(0, 75))
    assert opened(data, folder).folder == prepared.folder
    assert open_prepared(Source(str(data)), SETTINGS, folder).folder != prepared.folder


@pytest.mark.parametrize("is_named", [False, True])
def test_a_valid_part_is_kept(data, small_examples, tmp_path, is_named):
    file = tmp_path / "other.jsonl" if is_named else data / "valid.jsonl"
    write_examples(small_examples["valid"], file)
    prepared = opened(data, tmp_path / "prepared", **({"valid": file} if is_named else {}))
    assert prepared.description["n_documents"] == {"train": 300, "valid": 60, "test": 60}
    assert not prepared.valid_is_cut


def test_data_without_a_test_part_is_refused(data, tmp_path):
    folder = tmp_path / "prepared"
    with pytest.raises(DataError, match=r"no 'test' part .* data split .*train.jsonl FOLDER"):
        opened(data / "train.jsonl", folder)
    shutil.move(data / "test.jsonl", data / "valid.jsonl")
    with pytest.raises(DataError, match=r"train, valid.*FOLDER --valid 0"):
        opened(data, folder)
    assert not folder.exists()


def test_a_prepared_folder_must_have_all_parts(data, small_prepared, tmp_path):
    assert opened(small_prepared.folder, None).folder == small_prepared.folder
    prepared = open_prepared(Source(str(data)), SETTINGS, tmp_path / "prepared")
    with pytest.raises(DataError, match="without a 'valid' part"):
        opened(prepared.folder, tmp_path / "prepared")
