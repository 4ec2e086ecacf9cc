"""A valid part cut from train."""

from __future__ import annotations

from collections import Counter

import pytest

from setrnn.data.cut import cut, with_valid
from setrnn.data.example import Example
from setrnn.data.formats import BadRows, Dataset, open_dataset, write_examples
from setrnn.errors import BadRowError, DataError


def documents(n, start=0):
    """Documents of different texts; the label "rare" is in two of them, "once" in one."""
    extra = {3: ("rare",), 70: ("rare",), 5: ("once",)}
    return [
        Example(str(number), f"text {number}", (f"label-{number % 3}", *extra.get(number, ())))
        for number in range(start, start + n)
    ]


@pytest.fixture
def data(tmp_path):
    write_examples(documents(100), tmp_path / "train.jsonl")
    write_examples(documents(20, start=100), tmp_path / "test.jsonl")
    return tmp_path


def read(dataset, split, on_bad_row="stop"):
    return list(dataset.require(split).read(BadRows(on_bad_row)))


def test_train_is_parted_and_test_is_left_alone(data):
    cut_data = with_valid(open_dataset(data))
    train, valid = read(cut_data, "train"), read(cut_data, "valid")
    assert list(cut_data.splits) == ["train", "valid", "test"]
    assert cut_data.valid_is_cut
    assert len(valid) == 10
    assert sorted(train + valid, key=lambda each: int(each.id)) == documents(100)
    assert read(cut_data, "test") == documents(20, start=100)


def test_the_same_documents_are_cut_each_time(data):
    first, second = (with_valid(open_dataset(data)) for _ in range(2))
    assert read(first, "valid") == read(first, "valid") == read(second, "valid")


def test_a_rare_label_reaches_both_parts_and_the_rarest_stays_in_train(data):
    cut_data = with_valid(open_dataset(data))
    counts = {
        split: Counter(label for each in read(cut_data, split) for label in each.labels)
        for split in ("train", "valid")
    }
    assert counts["train"]["rare"] == counts["valid"]["rare"] == 1
    assert counts["train"]["once"] == 1


def test_copies_of_a_text_stay_together():
    examples = [Example(str(number), f"text {number % 10}", ("a",)) for number in range(100)]
    parts = cut(examples, (0.8, 0.2), seed=0)
    assert all(len({parts[number] for number in range(text, 100, 10)}) == 1 for text in range(10))
    assert parts.count(1) == 20


def test_data_with_a_valid_part_is_left_as_it_is(data):
    write_examples(documents(5, start=200), data / "dev.jsonl")
    dataset = open_dataset(data)
    assert with_valid(dataset) is dataset


def test_skipped_rows_are_counted_once(data):
    with (data / "train.jsonl").open("a") as stream:
        stream.write("no JSON\n")
    cut_data = with_valid(open_dataset(data))
    rows = {split: BadRows("skip") for split in ("train", "valid")}
    n_documents = sum(len(list(cut_data.splits[split].read(rows[split]))) for split in rows)
    assert n_documents == 100
    assert [each.n_skipped for each in rows.values()] == [1, 0]


def test_a_bad_row_is_named_as_ever(data):
    with (data / "train.jsonl").open("a") as stream:
        stream.write("no JSON\n")
    with pytest.raises(BadRowError, match=r"^train.jsonl line 101: is not JSON"):
        read(with_valid(open_dataset(data)), "valid")


@pytest.mark.parametrize("texts", [["one"], ["same", "same"]])
def test_too_few_texts_are_refused(tmp_path, texts):
    write_examples((Example(str(n), text) for n, text in enumerate(texts)), tmp_path / "a.jsonl")
    with pytest.raises(DataError, match=r"no 'valid' part.* too few different texts .*\(1\)"):
        read(with_valid(open_dataset(tmp_path / "a.jsonl")), "train")


def test_without_train_there_is_nothing_to_cut_from():
    with pytest.raises(DataError, match="has no 'train' part"):
        with_valid(Dataset("name", "place", {}))
