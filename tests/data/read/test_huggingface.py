"""Datasets of the hub, through a stand-in for the `datasets` library."""

from __future__ import annotations

import sys
import types

import pytest

from reading import read
from setrnn.data.example import Example
from setrnn.data.read import BadRows, open_dataset
from setrnn.errors import BadRowError, DataError, MissingExtraError

ROWS = [{"id": 1, "text": "one", "labels": ["x"]}, {"text": "two", "labels": []}]


class Rows(list):
    """A streamed split: rows, and what is known of its columns."""

    def __init__(self, rows, features=None):
        super().__init__(rows)
        self.features = features


class BrokenRows:
    features = None

    def __iter__(self):
        yield ROWS[0]
        raise RuntimeError("connection lost\nsecond line")


@pytest.fixture
def hub(monkeypatch):
    """Put splits on the hub; the calls made to it are kept."""
    module = types.ModuleType("datasets")
    module.splits, module.calls = {}, []

    def load_dataset(name, split=None, streaming=False):
        module.calls.append((name, split, streaming))
        if isinstance(module.splits, Exception):
            raise module.splits
        return module.splits[split] if split else module.splits

    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return module


def test_splits_are_streamed_under_our_names(hub):
    hub.splits = {"train": Rows(ROWS), "validation": Rows(ROWS[:1]), "unsupervised": Rows(ROWS)}
    dataset = open_dataset("hf:org/news")
    assert (dataset.name, dataset.place) == ("org/news", "hf:org/news")
    assert sorted(dataset.splits) == ["train", "valid"]
    assert dataset.require("train").files == ()
    assert hub.calls == [("org/news", None, True)]
    assert read("hf:org/news") == [Example("1", "one", ("x",)), Example("train-2", "two")]


@pytest.mark.parametrize(("asked", "split"), [("test", "test"), ("dev", "valid"), ("own", "train")])
def test_one_split_can_be_asked_for(hub, asked, split):
    hub.splits = {asked: Rows(ROWS)}
    dataset = open_dataset(f"hf:news:{asked}")
    assert sorted(dataset.splits) == [split]
    assert hub.calls == [("news", asked, True)]


class ListOf:
    def __init__(self, feature):
        self.feature = feature


CLASSES = types.SimpleNamespace(names=["sport", "economy"])


@pytest.mark.parametrize("kind", [ListOf(CLASSES), [CLASSES]])
def test_class_numbers_become_names(hub, kind):
    rows = [{"text": "one", "labels": [1, 0]}, {"text": "two", "labels": []}]
    hub.splits = {"train": Rows(rows, {"labels": kind})}
    assert [example.labels for example in read("hf:news")] == [("economy", "sport"), ()]


@pytest.mark.parametrize("labels", [[-1], [2], 1])
def test_a_wrong_class_number_is_a_bad_row(hub, labels):
    rows = [{"text": "one", "labels": [1]}, {"text": "two", "labels": labels}]
    hub.splits = {"train": Rows(rows, {"labels": ListOf(CLASSES)})}
    with pytest.raises(BadRowError, match=r"^hf:news train row 2: 'labels' must"):
        read("hf:news")
    assert len(read("hf:news", bad_rows=BadRows("skip"))) == 1


@pytest.mark.parametrize(
    "error", [ConnectionError("no route\nmore"), ValueError("no route"), KeyError("no route")]
)
def test_what_the_hub_raises_is_said_in_one_line(hub, error):
    hub.splits = error
    with pytest.raises(DataError, match=r"^hf:news cannot be read: .*no route.*network\.$"):
        open_dataset("hf:news")


def test_a_stream_that_breaks_is_said_in_one_line(hub):
    hub.splits = {"train": BrokenRows()}
    with pytest.raises(DataError, match=r"^hf:news train cannot be read: connection lost\. "):
        read("hf:news", bad_rows=BadRows("skip"))


def test_a_dataset_without_known_splits_lists_its_own(hub):
    hub.splits = {"alpha": Rows(ROWS)}
    with pytest.raises(DataError, match=r"it has alpha\. Name one: hf:news:SPLIT"):
        open_dataset("hf:news")
    with pytest.raises(DataError, match="Write hf:NAME"):
        open_dataset("hf:")


def test_the_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"Reading hf:news needs datasets.*setrnn\[hf\]"):
        open_dataset("hf:news")
