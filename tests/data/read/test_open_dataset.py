"""What a DATA argument may be, and what is said when it is something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from setrnn.data.example import Example
from setrnn.data.read import READERS, BadRows, Format, ReadOptions, Split, open_dataset
from setrnn.data.read.lines import numbered_lines
from setrnn.errors import ConfigError, DataError

ROW = '{"id": "a", "text": "one", "labels": ["x"]}\n'
CSV = "id,text,labels\na,one,x\n"


def refusal(data, *arguments, **options):
    with pytest.raises(DataError) as caught:
        open_dataset(data, ReadOptions(**options), *arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_lone_file_is_the_training_part(tmp_path):
    path = tmp_path / "news.jsonl.gz"
    path.write_bytes(b"")
    dataset = open_dataset(str(path))
    assert (dataset.name, dataset.place, list(dataset.splits)) == ("news", str(path), ["train"])
    assert dataset.require("train").files == (path,)


def test_a_folder_may_mix_formats_and_names_of_splits(tmp_path):
    (tmp_path / "train.jsonl").write_text(ROW)
    (tmp_path / "dev.csv").write_text(CSV)
    (tmp_path / "text_test").write_text("one\n")
    (tmp_path / "label_test").write_text("x\n")
    dataset = open_dataset(tmp_path)
    assert dataset.name == tmp_path.name
    assert sorted(dataset.splits) == ["test", "train", "valid"]
    for split in dataset.splits.values():
        assert [example.labels for example in split.read(BadRows())] == [("x",)]


@pytest.mark.parametrize("other", ["train.jsonl.gz", "train.csv"])
def test_a_split_in_two_files_is_refused_naming_both(tmp_path, other):
    (tmp_path / "train.jsonl").write_text(ROW)
    (tmp_path / other).write_text(CSV)
    message = refusal(tmp_path)
    assert "'train' twice" in message
    assert "train.jsonl" in message
    assert other in message


def test_a_named_format_settles_which_file_is_meant(tmp_path):
    (tmp_path / "train.jsonl").write_text(ROW)
    (tmp_path / "train.csv").write_text(CSV)
    assert open_dataset(tmp_path, reader="csv").require("train").files[0].name == "train.csv"


def test_a_named_format_takes_a_file_of_any_suffix(tmp_path):
    (tmp_path / "data.txt").write_text(ROW)
    split = open_dataset(tmp_path / "data.txt", reader="jsonl").require("train")
    assert len(list(split.read(BadRows()))) == 1


def test_a_format_nobody_knows_is_refused_with_the_nearest(tmp_path):
    assert "Did you mean 'jsonl'?" in refusal(tmp_path, "json")


def test_a_format_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "train.jsonl").write_text(ROW)
    assert "nothing in the format 'rcv1'" in refusal(tmp_path, "rcv1")


def test_a_missing_path_suggests_its_nearest_sibling(tmp_path):
    (tmp_path / "train.jsonl").write_text(ROW)
    assert "does not exist. Did you mean 'train.jsonl'?" in refusal(tmp_path / "trian.jsonl")
    assert "does not exist. Check the name." in refusal(tmp_path / "zzz")
    assert f"there is no folder {tmp_path / 'no'}" in refusal(tmp_path / "no" / "train.jsonl")


def test_the_embedded_corpus_is_suggested_for_a_bare_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "Did you mean 'newsroom'?" in refusal("newsrom")


def test_a_path_called_newsroom_is_meant_only_when_written_as_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "newsroom"
    folder.mkdir()
    (folder / "test.jsonl").write_text(ROW)
    for data in ("./newsroom", folder, folder.relative_to(tmp_path)):
        assert list(open_dataset(data).splits) == ["test"]
    assert "train" in open_dataset("newsroom").splits


def test_an_unknown_suffix_names_the_known_ones_and_the_way_out(tmp_path):
    (tmp_path / "data.docx").write_text("")
    message = refusal(tmp_path / "data.docx")
    for part in (".jsonl", ".csv", ".tsv", ".parquet", "--format"):
        assert part in message


def test_a_folder_without_documents_says_what_was_looked_for(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    message = refusal(tmp_path)
    for part in (
        str(tmp_path),
        "train, valid and test",
        ".jsonl",
        ".csv",
        "AAPD",
        "RCV1",
        "Reuters",
    ):
        assert part in message


def test_a_folder_where_a_file_is_meant_is_named(tmp_path):
    (tmp_path / "train.jsonl").mkdir()
    assert "train.jsonl is a folder" in refusal(tmp_path)


def test_a_prepared_folder_is_refused_with_its_use(tmp_path):
    (tmp_path / "prepared.json").write_text("{}")
    message = refusal(tmp_path)
    assert "is a prepared folder" in message
    assert "train and evaluate" in message


@pytest.mark.parametrize("data", ["", "a\0b", "x" * 5000])
def test_a_name_no_file_can_have_is_refused(data):
    refusal(data)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_neither_file_nor_folder_is_refused(tmp_path):
    os.mkfifo(tmp_path / "train.jsonl")
    assert "neither a file nor a folder" in refusal(tmp_path / "train.jsonl")


def test_a_folder_that_may_not_be_looked_into_is_refused(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "is_file", refuse)
    assert "Permission denied" in refusal(tmp_path)


def test_a_missing_split_is_named_with_those_found(tmp_path):
    (tmp_path / "test.jsonl").write_text(ROW)
    (tmp_path / "valid.jsonl").write_text(ROW)
    dataset = open_dataset(tmp_path)
    with pytest.raises(
        DataError, match=r"has no 'train' part: found test, valid\. Add train\.json"
    ):
        dataset.require("train")
    with pytest.raises(DataError, match=r"has no 'test' part: found train\. Give a folder"):
        open_dataset(tmp_path / "test.jsonl").require("test")


@pytest.mark.parametrize(
    ("name", "content"),
    [("e.jsonl", ""), ("e.jsonl", "\n \n"), ("e.csv", ""), ("e.csv", "text,labels\n")],
)
def test_a_file_without_documents_is_refused_once_read(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    split = open_dataset(tmp_path / name).require("train")
    with pytest.raises(DataError, match=f"^{name} holds no documents. Add"):
        list(split.read(BadRows()))


def test_a_file_of_bad_rows_only_is_refused_with_their_number(tmp_path):
    (tmp_path / "train.jsonl").write_text("nonsense\n" * 12)
    split = open_dataset(tmp_path).require("train")
    with pytest.raises(
        DataError, match=r"can be read: 12 rows skipped\. First: train\.jsonl line 1"
    ):
        list(split.read(BadRows("skip")))


@pytest.mark.parametrize(
    "options", [{"text_field": "title,"}, {"label_separator": ""}, {"max_row_bytes": 0}]
)
def test_options_under_which_nothing_can_be_read_are_refused(options):
    with pytest.raises(ConfigError):
        ReadOptions(**options)


def test_importing_the_readers_imports_no_heavy_library():
    heavy = "{'pyarrow', 'torch', 'datasets'}"
    code = f"import sys, setrnn.data.read; print({heavy} & set(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "set()"


@pytest.fixture
def toy(monkeypatch):
    """A format from outside the package: one line per document, `text | label label`."""

    def read(path, options, bad_rows):
        for number, line in numbered_lines(path, options.max_row_bytes):
            text, separator, labels = line.decode().strip().partition(" | ")
            if not separator:
                bad_rows.add(f"{path.name} line {number}", "has no bar. Write ' | '.")
                continue
            yield Example(str(number), text, tuple(labels.split()))

    monkeypatch.setitem(READERS, "toy", Format((".toy",), read))


@pytest.mark.usefixtures("toy")
class TestAFormatFromOutside:
    def read(self, dataset, split="train"):
        return [(each.text, each.labels) for each in dataset.require(split).read(BadRows())]

    def test_its_files_are_recognised_by_their_suffix(self, tmp_path):
        for name in ("train", "dev"):
            (tmp_path / f"{name}.toy").write_text(f"{name} | x y\n")
        dataset = open_dataset(tmp_path)
        assert self.read(dataset) == [("train", ("x", "y"))]
        assert self.read(dataset, "valid") == [("dev", ("x", "y"))]
        assert self.read(open_dataset(tmp_path / "dev.toy")) == [("dev", ("x", "y"))]

    def test_it_can_be_named(self, tmp_path):
        (tmp_path / "data.txt").write_text("one | x\n")
        dataset = open_dataset(tmp_path / "data.txt", reader="toy")
        assert self.read(dataset) == [("one", ("x",))]

    def test_messages_list_it(self, tmp_path):
        (tmp_path / "data.docx").write_text("")
        message = refusal(tmp_path / "data.docx")
        assert ".toy" in message
        assert "toy" in message.partition("--format")[2]
        assert ".toy" in refusal(tmp_path)
        assert "Did you mean 'toy'?" in refusal(tmp_path, "toys")

    def test_bad_rows_name_their_line(self, tmp_path):
        (tmp_path / "a.toy").write_text("one | x\ntwo\n")
        with pytest.raises(DataError, match=r"a.toy line 2: has no bar"):
            self.read(open_dataset(tmp_path / "a.toy"))

    def test_it_has_no_fields_for_known_labels(self, tmp_path):
        (tmp_path / "a.toy").write_text("one | x\n")
        with pytest.raises(DataError, match=r"a\.toy has no fields for known labels"):
            self.read(open_dataset(tmp_path / "a.toy", ReadOptions(present_field="right")))

    def test_it_may_read_addresses_instead_of_paths(self, monkeypatch):
        def find(place, options):
            name = str(place).removeprefix("toy:")
            return {"train": Split((), lambda bad_rows: iter([Example("1", name)]))}

        monkeypatch.setitem(READERS, "toy", Format(finder=find, prefix="toy:"))
        dataset = open_dataset("toy:news")
        assert (dataset.name, self.read(dataset)) == ("news", [("news", ())])
        with pytest.raises(DataError, match=r"no 'test' part.*Name another dataset"):
            dataset.require("test")


def test_the_format_that_the_docs_add_can_be_read(tmp_path, monkeypatch):
    docs = Path(__file__).parents[3] / "docs" / "data.md"
    block = docs.read_text(encoding="utf-8").rpartition("```python\n")[2].partition("```")[0]
    monkeypatch.setitem(READERS, "lines", READERS["jsonl"])  # removed at the end
    exec(block, {})
    (tmp_path / "news.lines").write_text("Rates rise | economy markets\n")
    (example,) = open_dataset(tmp_path / "news.lines").require("train").read(BadRows())
    assert (example.text, example.labels) == ("Rates rise", ("economy", "markets"))


@pytest.mark.parametrize("name", ["films.xlsx", "Films.XLS", "films.ods"])
def test_a_spreadsheet_is_refused_with_the_way_to_csv(tmp_path, name):
    (tmp_path / name).write_bytes(b"PK\x03\x04")
    for place in (tmp_path / name, tmp_path):
        assert "is a spreadsheet" in refusal(place)
        assert "CSV UTF-8" in refusal(place)
