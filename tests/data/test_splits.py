import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setrnn.data.example import Example
from setrnn.data.read import BadRows, open_dataset, write_examples
from setrnn.data.splits import cut_train, stratified_split, with_valid
from setrnn.errors import DataError

label_sets_of_documents = st.lists(st.sets(st.integers(0, 8), max_size=4), min_size=3, max_size=60)
shares_of_parts = st.sampled_from(
    [(1.0,), (0.5, 0.5), (0.8, 0.2), (0.8, 0.1, 0.1), (0.6, 0.3, 0.1)]
)


def zipf_label_sets(n_documents, n_labels, seed):
    """Sets of up to 4 labels, whose frequencies fall as 1 / rank."""
    generator = np.random.default_rng(seed)
    weights = 1 / np.arange(1, n_labels + 1)
    drawn = generator.choice(n_labels, size=(n_documents, 4), p=weights / weights.sum())
    return [set(row.tolist()) for row in drawn]


def label_counts(label_sets, parts, n_parts):
    """Count the documents of each label in each part: (L, P)."""
    n_labels = 1 + max(label for labels in label_sets for label in labels)
    counts = np.zeros((n_labels, n_parts), dtype=int)
    for labels, part in zip(label_sets, parts, strict=True):
        counts[list(labels), part] += 1
    return counts


@given(label_sets_of_documents, shares_of_parts, st.integers(0, 100))
@settings(deadline=None)
def test_each_document_gets_one_part_and_sizes_are_exact(label_sets, shares, seed):
    parts = stratified_split(label_sets, shares, seed)
    assert parts.shape == (len(label_sets),)
    sizes = np.bincount(parts, minlength=len(shares))
    assert len(sizes) == len(shares)
    assert sizes.min() >= 1
    wanted = np.array(shares) * len(label_sets)
    if wanted.min() >= 1:
        assert (np.abs(sizes - wanted) < 1).all()


@pytest.mark.parametrize("n_carriers", [3, 4, 9, 20])
@pytest.mark.parametrize("seed", range(3))
def test_rarest_label_reaches_every_part_it_has_documents_for(n_carriers, seed):
    label_sets = [{"rare", "common"}] * n_carriers + [{"common"}] * (200 - n_carriers)
    parts = stratified_split(label_sets, (0.9, 0.05, 0.05), seed)
    assert set(parts[:n_carriers]) == {0, 1, 2}


@pytest.mark.parametrize("seed", range(3))
def test_labels_reach_every_part_and_lie_closer_to_their_shares_than_by_chance(seed):
    shares = (0.8, 0.1, 0.1)
    label_sets = zipf_label_sets(3000, 80, seed)
    parts = stratified_split(label_sets, shares, seed)
    by_chance = np.random.default_rng(seed).permutation(parts)
    stratified = label_counts(label_sets, parts, 3)
    wanted = np.outer(stratified.sum(axis=1), shares)
    error = np.abs(stratified - wanted)
    error_by_chance = np.abs(label_counts(label_sets, by_chance, 3) - wanted)
    assert stratified.min() >= 1
    assert error.mean() < error_by_chance.mean() / 2
    # Labels are numbered in descending order of frequency; the first few are placed by the others.
    assert error[5:].mean() < error_by_chance[5:].mean() / 4


def test_documents_without_labels_are_shared_out_too():
    parts = stratified_split([()] * 100, (0.8, 0.2), seed=0)
    np.testing.assert_array_equal(np.bincount(parts), [80, 20])
    mixed = stratified_split([*[()] * 50, *[("a",)] * 50], (0.8, 0.2), seed=0)
    np.testing.assert_array_equal(np.bincount(mixed[:50]), [40, 10])
    np.testing.assert_array_equal(np.bincount(mixed[50:]), [40, 10])


@given(st.lists(st.integers(0, 30), min_size=60, max_size=60), st.integers(0, 20))
@settings(deadline=None)
def test_groups_stay_together(groups, seed):
    groups = [*groups, *range(100, 140)]
    label_sets = zipf_label_sets(100, 10, seed)
    parts = stratified_split(label_sets, (0.7, 0.3), seed, groups=groups)
    assert len(set(zip(groups, parts.tolist(), strict=True))) == len(set(groups))


def test_sizes_are_exact_where_small_groups_can_fill_them():
    groups = [f"text {number // 2 if number < 40 else number}" for number in range(400)]
    parts = stratified_split(zipf_label_sets(400, 10, 0), (0.8, 0.1, 0.1), seed=0, groups=groups)
    assert np.abs(np.bincount(parts) - [320, 40, 40]).max() <= 1


@pytest.mark.parametrize(
    ("label_sets", "shares", "groups", "message"),
    [
        ([["a"]] * 9, (1.2, -0.2), None, "above 0, got 1.2, -0.2"),
        ([["a"]] * 9, (0.5, float("nan")), None, "above 0"),
        ([["a"]] * 9, (0.5, 0.4), None, "add up to 1, got 0.5, 0.4"),
        ([["a"]] * 9, (), None, "add up to 1"),
        ([["a"]], (0.5, 0.5), None, "1 documents cannot make 2 parts"),
        (["ab", "c"], (0.5, 0.5), None, "got 'ab'"),
        ([["a"]] * 9, (0.5, 0.5), [1] * 9, "a part would be empty"),
    ],
)
def test_what_cannot_be_split_is_refused_in_one_line(label_sets, shares, groups, message):
    with pytest.raises(DataError, match=message) as error:
        stratified_split(label_sets, shares, seed=0, groups=groups)
    assert "\n" not in str(error.value)


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


@pytest.mark.parametrize(("n", "n_valid"), [(8, 2), (400, 100), (1_000, 150), (2_000, 200)])
def test_a_small_train_gives_a_larger_share_to_valid(tmp_path, n, n_valid):
    write_examples(documents(n), tmp_path / "train.jsonl")
    assert len(read(with_valid(open_dataset(tmp_path)), "valid")) == n_valid


def read(dataset, split, on_bad_row="stop"):
    return list(dataset.require(split).read(BadRows(on_bad_row)))


def test_train_is_parted_and_test_is_left_alone(data):
    cut_data = with_valid(open_dataset(data))
    train, valid = read(cut_data, "train"), read(cut_data, "valid")
    assert list(cut_data.splits) == ["train", "valid", "test"]
    assert len(valid) == 25
    assert sorted(train + valid, key=lambda each: int(each.id)) == documents(100)
    assert read(cut_data, "test") == documents(20, start=100)


def test_copies_of_a_text_stay_together(tmp_path):
    examples = [Example(str(number), f"text {number % 10}", ("a",)) for number in range(100)]
    write_examples(examples, tmp_path / "a.jsonl")
    dataset = cut_train(open_dataset(tmp_path / "a.jsonl"), {"train": 0.8, "test": 0.2})
    train, test = ({each.text for each in read(dataset, name)} for name in dataset.splits)
    assert not train & test
    assert len(read(dataset, "test")) == 20


def test_the_seed_decides_which_documents_are_cut(data):
    shares = {"train": 0.7, "valid": 0.2, "new": 0.1}
    first, same, other = (cut_train(open_dataset(data), shares, seed) for seed in (1, 1, 2))
    assert list(first.splits) == ["train", "valid", "new", "test"]
    assert [len(read(first, name)) for name in shares] == [70, 20, 10]
    assert read(first, "valid") == read(first, "valid") == read(same, "valid")
    assert read(first, "valid") != read(other, "valid")
    with pytest.raises(DataError, match="add up to 1"):
        cut_train(open_dataset(data), {"train": 0.7, "valid": 0.2})


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


@pytest.mark.parametrize("texts", [["one"], ["same", "same"]])
def test_too_few_texts_are_refused(tmp_path, texts):
    write_examples((Example(str(n), text) for n, text in enumerate(texts)), tmp_path / "a.jsonl")
    with pytest.raises(DataError, match=r"too few different texts \(1\).*2 parts"):
        read(with_valid(open_dataset(tmp_path / "a.jsonl")), "train")
