"""Several files, globs and folders of tables as one dataset."""

import pytest

from setrnn.config import TextSettings
from setrnn.data.cache import Source, prepared_path
from setrnn.data.read import BadRows, ReadOptions, open_dataset
from setrnn.errors import ConfigError, DataError


def write(folder, **ids):
    """Write a CSV file per name with these ids; return the files."""
    folder.mkdir(exist_ok=True, parents=True)
    for name, own in ids.items():
        rows = "".join(f"{each},text of {each} in {name},x\n" for each in own)
        (folder / f"{name}.csv").write_text(f"id,text,labels\n{rows}")
    return [folder / f"{name}.csv" for name in ids]


def read(data, bad_rows=None, split="train", **options):
    dataset = open_dataset(data, ReadOptions(**options))
    return list(dataset.require(split).read(bad_rows or BadRows()))


def ids(*arguments, **options):
    return [example.id for example in read(*arguments, **options)]


def test_files_a_glob_and_a_folder_give_the_same_documents(tmp_path):
    files = write(tmp_path / "in", a=["1", "2"], b=["3"])
    (tmp_path / "in" / "notes.txt").write_text("not a table")
    (tmp_path / "in" / ".hidden.csv").write_text("not a table")
    found = read(files)
    assert [example.id for example in found] == ["1", "2", "3"]
    assert read(str(tmp_path / "in" / "*.csv")) == found
    assert read(tmp_path / "in") == found


def test_formats_may_be_mixed(tmp_path):
    write(tmp_path, a=["1"])
    (tmp_path / "b.jsonl").write_text('{"id": "2", "text": "t", "labels": []}\n')
    assert ids(tmp_path) == ["1", "2"]


def test_ids_that_occur_in_two_files_get_their_names(tmp_path):
    files, bad_rows = write(tmp_path, a=["s1", "s2"], b=["s3", "s1"]), BadRows()
    assert ids(files, bad_rows) == ["s1", "s2", "s3", "b:s1"]
    assert len(bad_rows.notes) == 1
    assert "'b:s1'" in bad_rows.notes[0]
    assert "--id-prefix" in bad_rows.notes[0]


def test_the_prefix_of_ids_can_be_chosen(tmp_path):
    files = write(tmp_path, a=["1"], b=["1"])
    assert ids(files, id_prefix="none") == ["1", "1"]
    files = write(tmp_path, a=["1"], b=["2"])
    assert ids(files, id_prefix="file") == ["a:1", "b:2"]
    with pytest.raises(ConfigError, match="auto, file or none"):
        ReadOptions(id_prefix="always")


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    files = [*write(tmp_path / "one", export=["1"]), *write(tmp_path / "two", export=["1"])]
    assert ids(files) == ["1", "two/export:1"]


def test_repeated_ids_within_a_file_are_left_alone(tmp_path):
    assert ids(write(tmp_path, a=["1", "1"], b=["2"])) == ["1", "1", "2"]


def test_files_called_train_and_test_are_parts(tmp_path):
    files = write(tmp_path, train=["1"], test=["1"])
    assert list(open_dataset(files).splits) == ["train", "test"]
    assert ids(files, split="test") == ["1"]
    # Without train, they are documents to evaluate on.
    assert list(open_dataset(write(tmp_path, valid=["1"], test=["2"])).splits) == ["train"]


def test_files_beside_the_parts_of_a_folder_are_said_not_to_be_read(tmp_path):
    write(tmp_path, train=["1"], extra=["2"])
    bad_rows = BadRows()
    assert ids(tmp_path, bad_rows) == ["1"]
    assert "not extra.csv" in bad_rows.notes[0]


def test_folders_are_joined_by_their_parts(tmp_path):
    for name in ("one", "two"):
        write(tmp_path / name, train=[f"{name}-1"], test=[f"{name}-2"])
    places = [tmp_path / "one", tmp_path / "two"]
    assert ids(places) == ["one-1", "two-1"]
    assert ids(places, split="test") == ["one-2", "two-2"]


def test_the_source_can_be_a_feature(tmp_path):
    files = write(tmp_path, a=["1"], b=["2"])
    assert [each.features for each in read(files, source_feature=True)] == [
        ("source:a",),
        ("source:b",),
    ]
    # Also of one file, as at prediction.
    assert read(files[0], source_feature=True)[0].features == ("source:a",)


def test_an_empty_file_among_others_is_no_error(tmp_path):
    assert ids(write(tmp_path, a=["1"], b=[])) == ["1"]
    with pytest.raises(DataError, match="holds no documents"):
        ids(write(tmp_path, a=[], b=[]))


def test_the_file_at_fault_is_named(tmp_path):
    files = write(tmp_path, a=["1"], b=["2"])
    files[1].write_text("id,text\n1,t\n")
    with pytest.raises(DataError, match=r"b\.csv has no column 'labels'"):
        ids(files)


def test_a_file_is_not_read_twice(tmp_path):
    (file,) = write(tmp_path, a=["1"])
    with pytest.raises(DataError, match=r"a\.csv is given twice"):
        open_dataset([str(tmp_path / "*.csv"), file])


@pytest.mark.parametrize("data", ["nothing/*.csv", []])
def test_nothing_to_read_is_refused(data):
    with pytest.raises(DataError, match=r"No file matches|no data"):
        open_dataset(data)


def test_other_names_give_another_prepared_folder(tmp_path):
    first = Source(tuple(map(str, write(tmp_path / "in", a=["1"], b=["1"]))))
    write(tmp_path / "out", a=["1"], c=["1"])
    (tmp_path / "out" / "c.csv").write_bytes((tmp_path / "in" / "b.csv").read_bytes())
    second = Source((str(tmp_path / "out" / "a.csv"), str(tmp_path / "out" / "c.csv")))
    settings = TextSettings()
    places = {prepared_path(each, each.open(), settings).name for each in (first, second)}
    assert len(places) == 2
