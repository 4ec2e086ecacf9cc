from dataclasses import replace

import numpy as np
import pytest

from made_comparison import made_comparison
from setrnn.comparison.records import GIVEN, Failure, Record, TestResults
from setrnn.methods import METHODS
from setrnn.report.series.probabilities import probabilities
from setrnn.report.series.systems import SYSTEMS, systems_of


def test_the_order_of_systems_has_every_method_once():
    assert list(SYSTEMS) == list(METHODS)


def test_measures_are_those_of_the_records():
    comparison, records = made_comparison(("set-rnn",), n_seeds=2)
    system = systems_of(comparison, records).all[0]
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
    systems = systems_of(comparison, records).all
    assert [(system.name, len(system.runs)) for system in systems] == [("sgm", 1), ("set-rnn", 2)]


def test_probabilities_of_added_predictions_are_known_or_not():
    comparison, records = made_comparison(("br",))
    given = {GIVEN: [list(row) for row in comparison.truth]}
    n = len(comparison.truth)

    def added(probs):
        results = TestResults(given, probs, {})
        record = Record("theirs", 0, comparison.data_hash, GIVEN, test=results, is_added=True)
        return systems_of(comparison, [record, *records]).all[-1]

    assert probabilities(added({})) is None
    assert probabilities(added({GIVEN: [None] * n})) is None
    probs, is_right = probabilities(added({GIVEN: [0.5] * n}))
    assert np.all(probs == 0.5)
    assert is_right.all()
