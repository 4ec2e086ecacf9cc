"""Systems, their runs, and the answer that follows from them."""

from dataclasses import replace

import numpy as np
import pytest

from made_comparison import made_comparison
from setrnn.comparison.records import GIVEN, Failure, Record, TestResults
from setrnn.metrics import MEASURES
from setrnn.report.answer import write_answer
from setrnn.report.study import Study
from setrnn.systems.rules import rule_for

FAILURE = Failure("DivergedError", "The loss is not a number.")


def added(comparison, name="theirs", **probs):
    results = TestResults({GIVEN: [list(row) for row in comparison.truth]}, probs)
    return Record(name, 0, comparison.data_hash, GIVEN, test=results, is_added=True)


def test_measures_are_those_of_the_records():
    comparison, records = made_comparison(("set-rnn",), n_seeds=2)
    system = Study.of(comparison, records).systems["set-rnn"]
    for rule in ("set", "f1"):
        for score, values in (
            ("instance_f1", system.document_f1(rule)),
            ("label_f1", system.label_f1(rule)),
        ):
            assert values.mean(axis=1) == pytest.approx(system.recorded(score, rule))
    _, is_right = system.probabilities()
    assert is_right.mean(axis=1) == pytest.approx(system.recorded("subset_accuracy"))


def test_failed_runs_are_left_out_and_systems_are_in_the_order_of_the_paper():
    comparison, records = made_comparison(("set-rnn", "br", "sgm"), n_seeds=2)
    records = [
        replace(record, test=None, failure=FAILURE) if record.name in ("sgm-0", "br-0") else record
        for record in records
    ]
    study = Study.of(comparison, records)
    assert {name: len(each.runs) for name, each in study.systems.items()} == {
        "sgm": 1,
        "set-rnn": 2,
    }
    assert list(study.systems) == ["sgm", "set-rnn"]
    assert study.names == ["br", "sgm", "set-rnn"]


def test_probabilities_of_added_predictions_are_known_or_not():
    comparison, records = made_comparison(("br",))
    n = len(comparison.truth)

    def probabilities(probs):
        study = Study.of(comparison, [*records, added(comparison, **probs)])
        return study.systems["theirs"].probabilities()

    assert probabilities({}) is None
    assert probabilities({GIVEN: [None] * n}) is None
    probs, is_right = probabilities({GIVEN: [0.5] * n})
    assert np.all(probs == 0.5)
    assert is_right.all()


def test_each_measure_has_the_rule_made_for_it_or_that_of_added_predictions():
    comparison, records = made_comparison(("set-rnn",), n_documents=30)
    study = Study.of(comparison, [*records, added(comparison)])
    for measure in MEASURES:
        rules = {name: entry.rule for name, entry in study.by_rule_for(measure).items()}
        assert rules == {"set-rnn": rule_for(measure), "theirs": GIVEN}


def test_the_answer_names_the_best_system_and_whether_that_is_sure():
    comparison, records = made_comparison(("br", "set-rnn"))
    first, *rest = write_answer(Study.of(comparison, [*records, added(comparison)], 199))
    assert first == "Use theirs."
    assert "1.000 (95%" in rest[0]
    assert "significantly better than every other" in rest[1]
    twins = [added(comparison), added(comparison, "twin"), *records]
    first, *rest = write_answer(Study.of(comparison, twins, 199))
    assert first == "Use theirs."
    assert "twin is not significantly different" in rest[1]


def test_the_answer_names_the_quickest_of_equals_and_who_leads_by_other_measures():
    comparison, (slow, quick) = made_comparison(("set-rnn", "sigmoid"), 1, 60)
    quick = replace(quick, test=slow.test)
    costs = replace(quick.costs, training_seconds=2.0)
    text = " ".join(write_answer(Study.of(comparison, [slow, replace(quick, costs=costs)], 99)))
    assert "Of these, sigmoid is the quickest: it trains in 2.0 s" in text
    none = {**slow.test.predicted, "label-f1": [[] for _ in comparison.truth]}
    worse = replace(slow, test=replace(slow.test, predicted=none))
    text = " ".join(write_answer(Study.of(comparison, [worse, quick], 99)))
    assert "sigmoid is first in label-F1" in text


@pytest.mark.parametrize("lacking", [["br"], ["set-rnn"], ["br", "set-rnn"]])
def test_a_measure_whose_rule_could_not_be_fitted_is_not_mentioned(lacking):
    """Without complete valid documents there are no thresholds."""
    comparison, records = made_comparison(("br", "set-rnn"), 1, 60)
    for number, each in enumerate(records):
        if each.method in lacking:
            kept = {rule: sets for rule, sets in each.test.predicted.items() if rule != "label-f1"}
            records[number] = replace(each, test=replace(each.test, predicted=kept))
    first, *rest = write_answer(Study.of(comparison, records, 99))
    assert first.startswith("Use ")
    assert not any("label-F1" in each for each in rest)


def test_without_a_run_that_succeeded_there_is_no_answer():
    comparison, records = made_comparison(("br",), n_documents=20)
    failed = [replace(each, test=None, failure=FAILURE) for each in records]
    assert write_answer(Study.of(comparison, failed)) == [
        "No run succeeded: there is nothing to compare."
    ]
    alone = write_answer(Study.of(comparison, records, 99))
    assert alone[0] == "Use br."
    assert not any("sure" in each for each in alone)
