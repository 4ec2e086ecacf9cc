"""Folders on a disk and in a store of objects behave alike."""

import pytest

from setrnn.errors import ConfigError, DataError, SetRNNError
from setrnn.scale import stores
from setrnn.scale.stores import find_inputs, local_copy, open_input, open_store


@pytest.fixture(params=["path", "address", "fsspec"])
def place(request, tmp_path):
    scheme = {"path": "", "address": "file://", "fsspec": "local://"}[request.param]
    return f"{scheme}{tmp_path}/folder"


def test_what_is_written_is_read(place):
    store = open_store(place)
    assert store.read("a.json") is None
    assert store.names() == store.names("records") == []
    store.write("a.json", b"{}")
    store.write("records/1.json", b"1")
    with store.writing("b.txt") as path:
        path.write_bytes(b"text")
    assert store.read("a.json") == b"{}"
    assert store.names() == ["a.json", "b.txt"]
    assert store.names("records") == ["1.json"]
    store.remove("a.json")
    store.remove("a.json")
    assert store.names() == ["b.txt"]


def test_inputs_are_found_and_read(place):
    store = open_store(place)
    for name in ("b.jsonl", "a.jsonl", "c.csv"):
        store.write(name, name.encode())
    if "://" not in place:
        return  # files on a disk are found by open_dataset
    assert [each.rpartition("/")[2] for each in find_inputs(f"{place}/*.jsonl")] == [
        "a.jsonl",
        "b.jsonl",
    ]
    assert len(find_inputs(f"{place}/")) == 3
    (file,) = find_inputs(f"{place}/c.csv")
    with open_input(file) as stream, local_copy(file) as path:
        assert stream.read() == path.read_bytes() == b"c.csv"
    with pytest.raises(DataError, match="matches"):
        find_inputs(f"{place}/*.parquet")


def test_an_unknown_scheme_is_refused():
    with pytest.raises(ConfigError, match="nowhere://"):
        open_store("nowhere://bucket/folder")


def test_a_missing_object_is_said(tmp_path):
    with pytest.raises(DataError, match="does not exist"), open_input(f"file://{tmp_path}/x"):
        pass


def test_a_store_that_does_not_answer_is_named(monkeypatch):
    class Silent:
        def __getattr__(self, name):
            raise OSError("could not connect.")

    monkeypatch.setattr(stores, "_file_system", lambda address: (Silent(), "bucket/tags"))
    store = open_store("s3://bucket/tags")
    for ask in (
        lambda: find_inputs("s3://bucket/in/*.jsonl"),
        lambda: store.names(),
        lambda: store.read("plan.json"),
        lambda: store.write("plan.json", b""),
    ):
        with pytest.raises(SetRNNError, match=r"s3://bucket/.*could not connect"):
            ask()


def test_a_small_file_in_s3_is_one_put(monkeypatch):
    pyarrow_fs = pytest.importorskip("pyarrow.fs")
    opened = []

    def from_uri(uri):
        opened.append(uri)
        if len(opened) == 1:
            raise ValueError("Unexpected query parameter")  # an older pyarrow
        return "system", "bucket/tags"

    class FileSystem:
        pass

    FileSystem.from_uri = staticmethod(from_uri)
    monkeypatch.setattr(pyarrow_fs, "FileSystem", FileSystem)
    stores._file_system.cache_clear()
    assert stores._file_system("s3://bucket/tags") == ("system", "bucket/tags")
    stores._file_system.cache_clear()
    assert opened == ["s3://bucket/tags?allow_delayed_open=true", "s3://bucket/tags"]
