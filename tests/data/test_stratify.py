from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setrnn.data.stratify import stratified_split
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


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.integers(0, 100))
@settings(deadline=None)
def test_disjoint_labels_are_halved_to_within_one(label_of_document, seed):
    """With one label a document, equal parts have room for an equal share of each label."""
    parts = stratified_split([[label] for label in label_of_document], (0.5, 0.5), seed)
    for label, n in Counter(label_of_document).items():
        n_first = sum(
            part == 0
            for part, other in zip(parts, label_of_document, strict=True)
            if other == label
        )
        assert abs(n_first - n / 2) <= 1 / 2


@pytest.mark.parametrize("n_carriers", [3, 4, 9, 20])
@pytest.mark.parametrize("seed", range(3))
def test_rarest_label_reaches_every_part_it_has_documents_for(n_carriers, seed):
    label_sets = [{"rare", "common"}] * n_carriers + [{"common"}] * (200 - n_carriers)
    parts = stratified_split(label_sets, (0.9, 0.05, 0.05), seed)
    assert set(parts[:n_carriers]) == {0, 1, 2}


def test_label_with_fewer_documents_than_parts_goes_to_the_largest():
    label_sets = [{"rare"}, *[{"common"}] * 99]
    assert stratified_split(label_sets, (0.1, 0.8, 0.1), seed=0)[0] == 1


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
    # Labels are numbered by falling frequency; the first few are placed by the others.
    assert error[5:].mean() < error_by_chance[5:].mean() / 4


def test_seed_decides_the_split():
    label_sets = zipf_label_sets(300, 20, seed=0)
    one, same, other = (stratified_split(label_sets, (0.7, 0.3), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_names_of_labels_and_repeats_change_nothing():
    numbers = zipf_label_sets(200, 20, seed=0)
    names = [[f"label {label}" for label in labels] * 2 for labels in numbers]
    np.testing.assert_array_equal(
        stratified_split(numbers, (0.7, 0.3), seed=0), stratified_split(names, (0.7, 0.3), seed=0)
    )


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


def test_groups_of_one_change_nothing():
    label_sets = zipf_label_sets(200, 10, seed=0)
    np.testing.assert_array_equal(
        stratified_split(label_sets, (0.7, 0.3), seed=0, groups=range(200)),
        stratified_split(label_sets, (0.7, 0.3), seed=0),
    )


@pytest.mark.parametrize(
    ("label_sets", "shares", "groups", "message"),
    [
        ([["a"]] * 9, (1.2, -0.2), None, "above 0, got 1.2, -0.2"),
        ([["a"]] * 9, (0.5, float("nan")), None, "above 0"),
        ([["a"]] * 9, (0.5, 0.4), None, "add up to 1, got 0.5, 0.4"),
        ([["a"]] * 9, (), None, "add up to 1"),
        ([["a"]], (0.5, 0.5), None, "1 documents cannot make 2 parts"),
        (["ab", "c"], (0.5, 0.5), None, "got 'ab'"),
        ([["a"]] * 9, (0.5, 0.5), [1, 2], "one group for each of the 9 documents"),
        ([["a"]] * 9, (0.5, 0.5), [1] * 9, "a part would be empty"),
    ],
)
def test_what_cannot_be_split_is_refused_in_one_line(label_sets, shares, groups, message):
    with pytest.raises(DataError, match=message) as error:
        stratified_split(label_sets, shares, seed=0, groups=groups)
    assert "\n" not in str(error.value)
