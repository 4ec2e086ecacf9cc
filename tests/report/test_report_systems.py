from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_comparison import made_comparison
from setrnn.comparison.records import GIVEN, Failure, Record, TestResults
from setrnn.report.systems import Point, find_frontier, group_by_system


def test_measures_are_those_of_the_records():
    comparison, records = made_comparison(("set-rnn",), n_seeds=2)
    system = group_by_system(comparison, records).all[0]
    for rule in ("set", "f1"):
        scores = [record.scores["test"][rule] for record in records]
        assert system.instance_f1(rule) == pytest.approx([each["instance_f1"] for each in scores])
        assert system.label_f1(rule).mean(axis=1) == pytest.approx(
            [each["label_f1"] for each in scores]
        )
        assert system.is_right(rule).mean(axis=1) == pytest.approx(
            [each["subset_accuracy"] for each in scores]
        )


def test_failed_runs_are_left_out_and_systems_stand_in_the_order_of_the_paper():
    comparison, records = made_comparison(("set-rnn", "br", "sgm"), n_seeds=2)
    failure = Failure("DivergedError", "The loss is not a number.")
    records = [
        replace(record, test=None, failure=failure) if record.name in ("sgm-0", "br-0") else record
        for record in records
    ]
    systems = group_by_system(comparison, records).all
    assert [(system.name, len(system.runs)) for system in systems] == [("sgm", 1), ("set-rnn", 2)]


def test_probabilities_of_added_predictions_are_known_or_not():
    comparison, records = made_comparison(("br",))
    given = {GIVEN: [list(row) for row in comparison.truth]}
    n = len(comparison.truth)

    def added(probs):
        results = TestResults(given, probs, {})
        record = Record("theirs", 0, comparison.data_hash, GIVEN, test=results, is_added=True)
        return group_by_system(comparison, [record, *records]).all[-1]

    assert added({}).probabilities() is None
    assert added({GIVEN: [None] * n}).probabilities() is None
    probs, is_right = added({GIVEN: [0.5] * n}).probabilities()
    assert np.all(probs == 0.5)
    assert is_right.all()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_none_on_the_frontier_is_beaten_and_all_others_are(points):
    made = [Point(str(place), "set", *point, True) for place, point in enumerate(points)]
    found = [int(point.system) for point in find_frontier(made)]
    kept = [points[place] for place in found]
    for x, y in kept:
        assert not any((a <= x and b > y) or (a < x and b >= y) for a, b in points)
    for place, (x, y) in enumerate(points):
        assert place in found or any(a <= x and b >= y for a, b in kept)
