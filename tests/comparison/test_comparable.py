"""Data for a comparison: a valid part is cut where there is none; a test part must be there."""

import shutil

import pytest

from setrnn.comparison.comparable import cut_note, open_comparable
from setrnn.config import TextSettings
from setrnn.data.cache import Source, open_prepared
from setrnn.data.formats import write_examples
from setrnn.errors import DataError

SETTINGS = TextSettings()


@pytest.fixture
def data(small_examples, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("train", "test"):
        write_examples(small_examples[split], folder / f"{split}.jsonl")
    return folder


def opened(data, folder, **options):
    return open_comparable(Source(str(data), **options), SETTINGS, folder)


def test_a_missing_valid_part_is_cut_from_train(data, tmp_path):
    prepared = opened(data, tmp_path / "prepared")
    assert prepared.description["n_documents"] == {"train": 270, "valid": 30, "test": 60}
    assert prepared.description["valid_is_cut"] is True
    assert prepared.valid_is_cut
    train, valid = (prepared.split(name) for name in ("train", "valid"))
    assert not set(train.ids(0, 270)) & set(valid.ids(0, 30))
    assert cut_note(prepared) == (
        "data has no valid part: 10% of train was cut off for it (train 270, valid 30 documents)."
    )


def test_the_cut_data_is_found_again_and_apart_from_the_data_as_it_is(data, tmp_path):
    folder = tmp_path / "prepared"
    whole = open_prepared(Source(str(data)), SETTINGS, folder)
    first = opened(data, folder)
    made = (first.folder / "prepared.json").stat().st_mtime_ns
    again = opened(data, folder)
    assert first.folder != whole.folder
    assert again.folder == first.folder
    assert (again.folder / "prepared.json").stat().st_mtime_ns == made
    assert not whole.valid_is_cut


def test_a_valid_part_of_its_own_is_kept(data, small_examples, tmp_path):
    write_examples(small_examples["valid"], data / "valid.jsonl")
    prepared = opened(data, tmp_path / "prepared")
    assert prepared.description["n_documents"] == {"train": 300, "valid": 60, "test": 60}
    assert not prepared.valid_is_cut
    as_trained_on = open_prepared(Source(str(data)), SETTINGS, tmp_path / "prepared")
    assert as_trained_on.folder == prepared.folder


def test_a_valid_file_that_is_named_is_taken(data, small_examples, tmp_path):
    write_examples(small_examples["valid"], tmp_path / "other.jsonl")
    prepared = opened(data, tmp_path / "prepared", valid=tmp_path / "other.jsonl")
    assert prepared.description["n_documents"]["valid"] == 60
    assert not prepared.valid_is_cut


def test_a_lone_file_has_no_test_part(data, tmp_path):
    file = data / "train.jsonl"
    with pytest.raises(DataError, match=r"no 'test' part .* data split .*train.jsonl FOLDER,"):
        opened(file, tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()


def test_without_test_a_valid_part_is_kept_by_the_way_out(data, tmp_path):
    shutil.move(data / "test.jsonl", data / "valid.jsonl")
    with pytest.raises(DataError, match=r"found train, valid\. .* FOLDER --valid 0, then"):
        opened(data, tmp_path / "prepared")


@pytest.mark.parametrize("missing", ["valid", "test"])
def test_a_prepared_folder_that_lacks_a_part_is_refused(data, small_examples, tmp_path, missing):
    if missing == "test":
        (data / "test.jsonl").unlink()
        write_examples(small_examples["valid"], data / "valid.jsonl")
    prepared = open_prepared(Source(str(data)), SETTINGS, tmp_path / "prepared")
    with pytest.raises(DataError, match=rf"without a '{missing}' part.* Give the data"):
        opened(prepared.folder, tmp_path / "prepared")


def test_a_complete_prepared_folder_is_taken_as_it_is(small_prepared):
    assert opened(small_prepared.folder, None).folder == small_prepared.folder
