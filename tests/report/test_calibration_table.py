"""Accepted shares and calibration errors: known answers."""

from dataclasses import replace

import numpy as np
import pytest
from test_findings import compared

from made_comparison import made_comparison
from setrnn.report.calibration_table import TARGETS, calibration_table, find_largest_shares

N = len(TARGETS)


def test_the_largest_share_is_that_of_all_prefixes_tried_one_by_one():
    random = np.random.default_rng(0)
    probs = random.random(200).round(2)  # some are equal
    is_right = random.random(200) < probs
    found = find_largest_shares(probs, is_right, np.ones((1, 200)))[0]
    for target, share in zip(TARGETS, found, strict=True):
        tried = [is_right[probs >= limit] for limit in probs]
        expected = max([len(each) / 200 for each in tried if each.mean() >= target], default=0)
        assert share == pytest.approx(expected)


def test_a_document_drawn_twice_counts_twice():
    probs, is_right = np.array([0.9, 0.8, 0.7]), np.array([True, False, True])
    once, twice = find_largest_shares(probs, is_right, np.array([[1.0, 1, 1], [2.0, 0, 1]]))
    assert once == pytest.approx([1 / 3] * N)
    assert twice == pytest.approx([1] * N)


def test_more_is_accepted_where_less_must_be_right_and_what_is_sure_is_less():
    comparison, records = made_comparison(("set-rnn", "br"), n_seeds=2)
    for row in calibration_table(comparison, records).rows:
        cells = row.cells[-N:]
        assert [cell.value for cell in cells] == sorted([cell.value for cell in cells])[::-1]
        for cell in cells:
            assert cell.more["low"] <= cell.value <= cell.more["high"]
            assert cell.more["sure"] <= cell.value
    perfect = calibration_table(*compared({"set-rnn": 0.0})).rows[0]
    assert [cell.value for cell in perfect.cells[-N:]] == [1] * N
    recorded = records[0].scores["test"]["set"]
    assert perfect.cells[0].value == recorded["calibration_error_raw"]


def test_predictions_without_probabilities_have_no_row():
    comparison, (record,) = made_comparison(("br",), n_documents=40)
    bare = replace(record, scores={}, test=replace(record.test, probability={}))
    assert not calibration_table(comparison, [bare]).rows
