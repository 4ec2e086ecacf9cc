"""What a DATA argument may be: files, globs, folders, formats from outside, standard input."""

from __future__ import annotations

import io
import json
import os

import pytest

from reading import read
from setrnn.config import TextSettings
from setrnn.data.cache import prepared_path
from setrnn.data.example import Example
from setrnn.data.read import READERS, BadRows, Format, ReadOptions, Split, open_dataset
from setrnn.data.read.dataset import open_standard_input
from setrnn.data.read.lines import numbered_lines
from setrnn.data.source import Source
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


def ids(*arguments, **options):
    return [example.id for example in read(*arguments, **options)]


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


def test_a_named_format_settles_which_file_is_meant_and_takes_any_suffix(tmp_path):
    (tmp_path / "train.jsonl").write_text(ROW)
    (tmp_path / "train.csv").write_text(CSV)
    (tmp_path / "data.txt").write_text(ROW)
    assert open_dataset(tmp_path, reader="csv").require("train").files[0].name == "train.csv"
    assert ids(tmp_path / "data.txt", reader="jsonl") == ["a"]


REFUSED = {
    "trian.jsonl": "trian.jsonl does not exist. Did you mean 'train.jsonl'?",
    "zzz": "does not exist. Check the name.",
    "no/train.jsonl": "there is no folder",
    "data.docx": ".jsonl, .jsonl.gz, .ndjson, .ndjson.gz, .csv",
    "Films.XLS": "is a spreadsheet. Save its sheet as .xlsx or CSV",
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


def test_wrong_names_are_refused_with_the_nearest(tmp_path, monkeypatch):
    (tmp_path / "train.jsonl").write_text(ROW)
    assert "is not the name of a file" in refusal("")
    assert "no data" in refusal([])
    assert "Did you mean 'jsonl'?" in refusal(tmp_path, "json")
    assert "nothing in the format 'rcv1'" in refusal(tmp_path, "rcv1")
    assert "given twice" in refusal([str(tmp_path / "*.jsonl"), tmp_path / "train.jsonl"])
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


def test_a_missing_split_is_named_with_those_found(tmp_path):
    (tmp_path / "test.jsonl").write_text(ROW)
    (tmp_path / "valid.jsonl").write_text(ROW)
    with pytest.raises(DataError, match=r"has no 'train' part: found test, valid\. Give a folder"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("e.jsonl", "", "Add at least"),
        ("e.jsonl", "\n \n", "Add at least"),
        ("e.csv", "", "Add at least"),
        ("e.csv", "text,labels\n", "Add at least"),
        ("e.jsonl", "nonsense\n" * 12, r"can be read: 12 rows skipped\. First: e\.jsonl line 1"),
    ],
)
def test_a_file_without_documents_is_refused_once_read(tmp_path, name, content, says):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=f"^{name} holds no documents.*{says}"):
        read(tmp_path / name, BadRows("skip"))


@pytest.mark.parametrize(
    "options",
    [
        {"text_field": "title,"},
        {"label_separator": ""},
        {"max_row_bytes": 0},
        {"encoding": "klingon"},
        {"encoding": "base64"},
    ],
)
def test_options_under_which_nothing_can_be_read_are_refused(options):
    with pytest.raises(ConfigError):
        ReadOptions(**options)


def test_a_format_from_outside_is_known_by_its_suffix_and_its_name(tmp_path, monkeypatch):
    def read_toy(path, options, bad_rows):
        for number, line in numbered_lines(path, options.max_row_bytes):
            text, separator, labels = line.decode().strip().partition(" | ")
            if not separator:
                bad_rows.add(f"{path.name} line {number}", "has no bar. Write ' | '.")
                continue
            yield Example(str(number), text, tuple(labels.split()))

    monkeypatch.setitem(READERS, "toy", Format((".toy",), read_toy))
    for name in ("in/train.toy", "in/dev.toy", "data.txt", "data.docx", "none/data.docx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{name} | x y\n")
    assert read(tmp_path / "in") == [Example("1", "in/train.toy", ("x", "y"))]
    assert read(tmp_path / "in", split="valid")[0].text == "in/dev.toy"
    assert read(tmp_path / "in" / "dev.toy")[0].text == "in/dev.toy"
    assert read(tmp_path / "data.txt", reader="toy")[0].text == "data.txt"
    assert "toy" in refusal(tmp_path / "data.docx").partition("--format")[2]
    assert ".toy" in refusal(tmp_path / "none")
    assert "Did you mean 'toy'?" in refusal(tmp_path, "toys")
    (tmp_path / "bad.toy").write_text("one | x\ntwo\n")
    with pytest.raises(BadRowError, match=r"bad\.toy line 2: has no bar"):
        read(tmp_path / "bad.toy")


def test_a_format_from_outside_may_read_addresses_instead_of_paths(monkeypatch):
    def find(place, options):
        name = str(place).removeprefix("toy:")
        return {"train": Split((), lambda bad_rows: iter([Example("1", name)]))}

    monkeypatch.setitem(READERS, "toy", Format(finder=find, prefix="toy:"))
    assert open_dataset("toy:news").name == "news"
    assert read("toy:news") == [Example("1", "news")]


def test_files_a_glob_and_a_folder_give_the_same_documents(tmp_path):
    files = write(tmp_path / "in", a=["1", "2"], b=["3"])
    (tmp_path / "in" / "notes.txt").write_text("not a table")
    (tmp_path / "in" / ".hidden.csv").write_text("not a table")
    found = read(files)
    assert [example.id for example in found] == ["1", "2", "3"]
    assert read(str(tmp_path / "in" / "*.csv")) == found
    assert read(tmp_path / "in") == found
    (tmp_path / "in" / "c.jsonl").write_text('{"id": "4", "text": "t", "labels": []}\n')
    assert ids(tmp_path / "in") == ["1", "2", "3", "4"]


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


def test_of_several_files_one_may_be_empty_and_one_at_fault_is_named(tmp_path):
    assert ids(write(tmp_path, a=["1"], b=[])) == ["1"]
    with pytest.raises(DataError, match="holds no documents"):
        ids(write(tmp_path, a=[], b=[]))
    files = write(tmp_path, a=["1"], b=["2"])
    files[1].write_text("id,text\n1,t\n")
    with pytest.raises(DataError, match=r"b\.csv has no column 'labels'"):
        ids(files)


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
        ("Schnee fällt\n".encode("utf-16"), [Example("stdin-1", "Schnee fällt")]),
    ],
)
def test_the_format_of_standard_input_is_recognised(content, examples):
    assert read_stdin(content) == examples


@pytest.mark.parametrize(
    ("content", "reader", "says"),
    [
        (b"7,One\n", "csv", "stdin has no column 'text'"),
        (b"", None, "stdin holds no documents"),
        (b"\n\n", None, "stdin holds no documents"),
        (b"One\n\xff\n", None, "stdin line 2: is not UTF-8"),
    ],
)
def test_standard_input_without_documents_is_refused(content, reader, says):
    with pytest.raises(DataError, match=says):
        read_stdin(content, reader)


def test_standard_input_may_have_any_named_format():
    content = b"\xef\xbb\xbfid;text\n7;One, two\n"
    assert read_stdin(content, "csv") == [Example("7", "One, two")]


ROWS = {"csv": "text,labels\na,x\nb,\nc, \nd,[]\n", "tsv": "text\tlabels\na\tx\nb\t\nc\t\nd\t[]\n"}
ROWS["jsonl"] = "".join(
    json.dumps({"text": text, "labels": labels}) + "\n"
    for text, labels in (("a", ["x"]), ("b", None), ("c", None), ("d", []))
)


@pytest.mark.parametrize("suffix", ROWS)
def test_rows_without_labels_stop_until_it_is_said_what_they_are(tmp_path, suffix):
    file = tmp_path / f"train.{suffix}"
    file.write_text(ROWS[suffix])
    first = f"train.{suffix} line {2 if suffix == 'jsonl' else 3}"
    with pytest.raises(DataError) as caught:
        read(file, BadRows("skip"))
    message = str(caught.value)
    assert message.startswith(f"train.{suffix}: 2 of 4 rows have no labels, first {first}. ")
    assert "--unlabelled-rows skip" in message
    assert "--unlabelled-rows empty" in message
    kept = [each.text for each in read(file, unlabelled_rows="empty")]
    assert kept == ["a", "b", "c", "d"]
    bad_rows = BadRows()
    kept = [(each.text, each.labels) for each in read(file, bad_rows, unlabelled_rows="skip")]
    assert kept == [("a", ("x",)), ("d", ())], "a list [] says that no label applies"
    assert bad_rows.notes == [f"train.{suffix}: 2 rows without labels left out."]
    assert len(read(file, require_labels=False)) == 4


def test_rows_whose_labels_are_unknown_are_not_unlabelled(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text("text,labels,unknown,complete\na,,x,\nb,,,no\n")
    assert [each.is_incomplete for each in read(file)] == [True, True]


def test_the_rows_of_all_files_are_counted(tmp_path):
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("text,labels\na,x\nb,\n")
    with pytest.raises(DataError, match=r"2 of 4 rows have no labels, first one\.csv line 3"):
        read(tmp_path)
    (tmp_path / "one.csv").write_text("text,labels\na,\n")
    (tmp_path / "two.csv").unlink()
    with pytest.raises(DataError, match="1 of 1 rows have no labels"):
        read(tmp_path)


def test_documents_with_the_same_text_are_merged_on_demand(tmp_path):
    file = tmp_path / "train.csv"
    rows = ["1,A late  goal,x,,f", "2,b,y,,", "3,a late goal,y;x,z,g", "4,,x,,", "5,,y,,"]
    file.write_text("\n".join(["id,text,labels,unknown,features", *rows]))
    bad_rows = BadRows()
    first, *others = read(file, bad_rows, merge_duplicates=True)
    assert first == Example("1", "A late  goal", ("x", "y"), ("f", "g"), unknown=("z",))
    assert [each.id for each in others] == ["2", "4", "5"], "empty texts are not compared"
    assert bad_rows.notes == ["train.csv: 1 document merged into others with the same text."]
    assert len(read(file)) == len(read(file, merge_duplicates=True, require_labels=False)) == 5
