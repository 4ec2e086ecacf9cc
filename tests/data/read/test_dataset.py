"""What a DATA argument may be: files, globs, folders, formats from outside, standard input."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from setrnn.config import TextSettings
from setrnn.data.cache import Source, prepared_path
from setrnn.data.example import Example
from setrnn.data.read import READERS, BadRows, Format, ReadOptions, Split, open_dataset
from setrnn.data.read.dataset import open_standard_input
from setrnn.data.read.lines import numbered_lines
from setrnn.errors import BadRowError, ConfigError, DataError

ROW = '{"id": "a", "text": "one", "labels": ["x"]}\n'
CSV = "id,text,labels\na,one,x\n"


def refusal(data, *arguments, **options):
    with pytest.raises(DataError) as caught:
        open_dataset(data, ReadOptions(**options), *arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


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


REFUSED = {
    "trian.jsonl": "trian.jsonl does not exist. Did you mean 'train.jsonl'?",
    "zzz": "does not exist. Check the name.",
    "no/train.jsonl": "there is no folder",
    "data.docx": ".jsonl, .jsonl.gz, .ndjson, .ndjson.gz, .csv",
    "Films.XLS": "is a spreadsheet. Save its sheet as CSV",
    "sheets": "films.ods is a spreadsheet",
    "empty": "holds no documents: looked for train, valid and test with .jsonl",
    "nested": "train.jsonl is a folder",
    "prepared": "is a prepared folder: it holds numbers, not documents",
    "a\0b": "is not the name of a file",
    "x" * 5000: "cannot be read",
    "pipe": "neither a file nor a folder",
    "*.tsv": "No file matches",
}


@pytest.mark.parametrize("place", REFUSED)
def test_what_holds_no_documents_is_refused_with_the_way_out(tmp_path, place):
    (tmp_path / "train.jsonl").write_text(ROW)
    for name in ("data.docx", "Films.XLS", "sheets/films.ods", "empty/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"PK")
    (tmp_path / "nested" / "train.jsonl").mkdir(parents=True)
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / "prepared.json").write_text("{}")
    os.mkfifo(tmp_path / "pipe")
    assert REFUSED[place] in refusal(str(tmp_path / place))


def test_no_name_at_all_is_refused():
    assert "is not the name of a file" in refusal("")
    assert "no data" in refusal([])


def test_a_wrong_format_is_refused_with_the_nearest(tmp_path):
    (tmp_path / "train.jsonl").write_text(ROW)
    assert "Did you mean 'jsonl'?" in refusal(tmp_path, "json")
    assert "nothing in the format 'rcv1'" in refusal(tmp_path, "rcv1")


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


def test_a_folder_that_may_not_be_looked_into_is_refused(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "is_file", refuse)
    assert "Permission denied" in refusal(tmp_path)


def test_a_missing_split_is_named_with_those_found(tmp_path):
    (tmp_path / "test.jsonl").write_text(ROW)
    (tmp_path / "valid.jsonl").write_text(ROW)
    dataset = open_dataset(tmp_path)
    with pytest.raises(DataError, match=r"has no 'train' part: found test, valid\. Give a folder"):
        dataset.require("train")


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


def test_the_format_that_the_docs_add_can_be_read(tmp_path, monkeypatch):
    docs = Path(__file__).parents[3] / "docs" / "data.md"
    block = docs.read_text(encoding="utf-8").rpartition("```python\n")[2].partition("```")[0]
    monkeypatch.setitem(READERS, "lines", READERS["jsonl"])  # removed at the end
    exec(block, {})
    (tmp_path / "news.lines").write_text("Rates rise | economy markets\n")
    (example,) = open_dataset(tmp_path / "news.lines").require("train").read(BadRows())
    assert (example.text, example.labels) == ("Rates rise", ("economy", "markets"))


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


def test_other_names_give_another_prepared_folder(tmp_path):
    first = Source(tuple(map(str, write(tmp_path / "in", a=["1"], b=["1"]))))
    write(tmp_path / "out", a=["1"], c=["1"])
    (tmp_path / "out" / "c.csv").write_bytes((tmp_path / "in" / "b.csv").read_bytes())
    second = Source((str(tmp_path / "out" / "a.csv"), str(tmp_path / "out" / "c.csv")))
    settings = TextSettings()
    places = {prepared_path(each, each.open(), settings).name for each in (first, second)}
    assert len(places) == 2


def read_stdin(content, reader=None, **options):
    stream = io.BytesIO(content)
    with open_standard_input(stream, ReadOptions(require_labels=False, **options), reader) as split:
        return list(split.read(BadRows()))


@pytest.mark.parametrize(
    ("content", "examples"),
    [
        (b"One, two\n\nThree\n", [Example("stdin-1", "One, two"), Example("stdin-3", "Three")]),
        (b"no end of line", [Example("stdin-1", "no end of line")]),
        (b'\n{"id": 7, "text": "One"}\n', [Example("7", "One")]),
        (b"id;text\n7;One, two\n", [Example("7", "One, two")]),
        (b"\xef\xbb\xbftext\nOne\n", [Example("stdin-1", "One")]),
        ("Schnee fällt\n".encode("utf-16"), [Example("stdin-1", "Schnee fällt")]),
    ],
)
def test_the_format_of_standard_input_is_recognised(content, examples):
    assert read_stdin(content) == examples


def test_the_format_of_standard_input_can_be_named():
    assert read_stdin(b"id,text,more\n7,One,\n", "csv") == [Example("7", "One")]
    with pytest.raises(DataError, match="stdin has no column 'text'"):
        read_stdin(b"id,description\n7,One\n", "csv")


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_empty_standard_input_is_refused(content):
    with pytest.raises(DataError, match="stdin holds no documents"):
        read_stdin(content)


def test_a_line_that_cannot_be_read_is_named():
    with pytest.raises(BadRowError, match=r"stdin line 2: is not UTF-8"):
        read_stdin(b"One\n\xff\n")
