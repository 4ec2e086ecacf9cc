import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_comparison import made_comparison
from setrnn.report.figures.groups import (
    MOST_BINS,
    NEVER,
    average_groups,
    bin_by_frequency,
    group_by_size,
)
from setrnn.report.systems import group_by_system


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=50))
def test_each_label_is_in_the_one_bin_its_count_falls_into(counts):
    bins = bin_by_frequency(counts)
    for count, place in zip(counts, bins.of_label.tolist(), strict=True):
        if place == NEVER:
            assert count == 0
        else:
            assert bins.base**place <= count < bins.base ** (place + 1)
    assert len(bins.bins) <= MOST_BINS + 1


def test_bins_are_as_fine_as_can_be_read():
    assert bin_by_frequency([1, 2, 3, 4]).of_label.tolist() == [0, 1, 1, 2]
    assert bin_by_frequency([300, 1500]).base == 2
    assert bin_by_frequency([1, 5000]).base == 4
    assert bin_by_frequency([1, 10**6]).base == 10


@pytest.mark.parametrize("measure", ["label_f1", "document_f1"])
def test_group_means_weigh_back_to_the_mean_of_all(measure):
    comparison, records = made_comparison(("set-rnn",), n_seeds=2)
    system = group_by_system(comparison, records).all[0]
    values = getattr(system, measure)("set")
    if measure == "label_f1":
        groups = bin_by_frequency(comparison.label_counts).of_label
    else:
        groups = group_by_size(comparison.truth).of_document
    means = average_groups(values, groups)
    _, n = np.unique(groups, return_counts=True)
    assert np.average(means, weights=n) == pytest.approx(values.mean())
    assert len(means) > 1


def test_the_few_largest_sets_share_a_group():
    groups = group_by_size(
        [[0]] * 500 + [[0, 1]] * 500 + [list(range(9))] * 3 + [list(range(7))] * 8
    )
    assert groups.names == ["1", "2", "7+"]
    assert np.bincount(groups.of_document)[[1, 2, 7]].tolist() == [500, 500, 11]
