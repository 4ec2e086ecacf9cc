"""Tables say what the statistics say, and cope with what is missing."""

from dataclasses import replace

import numpy as np
import pytest
from test_findings import compared
from test_study import added

from made_comparison import ERRORS, made_comparison
from setrnn.comparison.records import Comparison, Failure, Record, SetSums, TestResults
from setrnn.comparison.statistics import LOG_LIKELIHOOD, Entry, holm
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES
from setrnn.methods import METHODS
from setrnn.metrics import MEASURES
from setrnn.report.scores import TRUE_SET, hierarchy_table, unseen_sets_table
from setrnn.report.study import Study
from setrnn.report.table import Estimate
from setrnn.report.tables import (
    calibration_table,
    labels_table,
    make_tables,
    sequences_table,
    set_sums_table,
)
from setrnn.systems.registry import find_system
from setrnn.systems.rules import rule_for

NAMES = {"best-rules", "rules", "unseen-sets", "set-sums", "labels", "calibration", "objectives"}
NAMES |= {"systems", "differences", "costs", "data"}


@pytest.fixture(scope="module")
def study():
    comparison, records = made_comparison(n_documents=100)
    return Study.of(comparison, [*records, added(comparison, "mine")], 199)


@pytest.fixture(scope="module")
def tables(study):
    return tables_of(study)


def tables_of(study):
    return {table.name: table for table in make_tables(study)}


def row_of(table, row):
    """Return the values of a row by header."""
    place = list(table.rows).index(row)
    return {column.header: values[place] for column, values in table.values.items()}


def test_all_tables_are_made_and_have_rows(tables):
    assert set(tables) == NAMES
    assert all(table.rows for table in tables.values())


def test_scores_and_marks_are_those_of_the_statistics(study, tables):
    for table, entries_for in (
        ("systems", lambda measure: study.own()),
        ("best-rules", study.by_rule_for),
    ):
        for measure, shown in MEASURES.items():
            entries = entries_for(measure)
            standing = study.draws.standing(list(entries.values()), measure)
            header = shown if table == "systems" else f"{shown} (rule {rule_for(measure)})"
            for name, entry in entries.items():
                cell = row_of(tables[table], name)[header]
                assert cell.value == study.draws.mean(entry, measure)
                is_best = standing.stands and entry == standing.best
                is_tied = entry in standing.tied or (entry == standing.best and standing.tied)
                assert cell.mark == ("best" if is_best else "tied" if is_tied else "")
                assert cell.p == standing.p.get(entry)


def test_only_a_best_that_stands_is_best():
    """A perfect system stands; twins of it do not."""
    comparison, records = made_comparison(("br", "set-rnn"), n_documents=60)
    one = [*records, added(comparison, "mine")]
    for runs, mark in ((one, "best"), ([*one, added(comparison, "twin")], "tied")):
        table = tables_of(Study.of(comparison, runs, 199))["systems"]
        assert {row_of(table, "mine")[each].mark for each in MEASURES.values()} == {mark}


def test_rules_are_of_systems_that_emit_sequences_with_gains_corrected_over_the_table(
    study, tables
):
    table = tables["rules"]
    assert table.rows == [name for name in ERRORS if find_system(METHODS[name]).emits_sequences]
    places = [
        (name, measure, rule)
        for measure in ("instance_f1", "label_f1", "micro_f1")
        for rule in ("set", "f1")
        for name in table.rows
    ]
    gains = [
        study.draws.difference(Entry(name, rule), Entry(name, "sequence"), measure)
        for name, measure, rule in places
    ]
    corrected = holm([gain.p for gain in gains])
    for (name, measure, rule), gain, p in zip(places, gains, corrected, strict=True):
        cell = row_of(table, name)[f"{MEASURES[measure]}, sequence → {rule}"]
        assert (cell.value, cell.p) == (gain.mean, p)


def test_differences_compare_all_pairs_and_say_how_many_documents_would_separate_them(
    study, tables
):
    table, n_pairs = tables["differences"], 14 * 13 // 2
    assert len(set(table.rows)) == n_pairs
    expected = study.draws.pairs(list(study.own().values()), "label_f1")
    for pair in table.rows:
        found = row_of(table, pair)
        assert found["label-F1"].value == expected[pair].mean
        assert found["label-F1 p"].value == expected[pair].p
        assert found["label-F1 p"].tests == n_pairs
        assert bool(found["label-F1 documents"]) == (expected[pair].p >= 0.05)
    assert f"{n_pairs} pairs" in table.caption


def test_costs_are_means_over_runs_and_empty_for_added_predictions(study, tables):
    assert row_of(tables["costs"], "set-rnn")["training, seconds"].value == 60
    assert not any(list(row_of(tables["costs"], "mine").values())[1:])
    seconds = {"set-rnn-0": 10.0, "set-rnn-1": 20.0, "set-rnn-2": 60.0}
    changed = [
        replace(record, costs=replace(record.costs, training_seconds=seconds[record.name]))
        for record in study.records
        if record.method == "set-rnn"
    ]
    table = tables_of(Study.of(study.comparison, changed, 99))["costs"]
    cell = row_of(table, "set-rnn")["training, seconds"]
    assert cell == Estimate(30, std=pytest.approx(26.457513))


def test_a_system_whose_runs_all_failed_says_so_and_others_go_on_with_those_left():
    comparison, records = made_comparison(("br", "set-rnn", "sigmoid"), n_documents=40)
    failure = Failure("MemoryError", "no memory left")
    records = [
        replace(record, test=None, costs=None, scores={}, failure=failure)
        if record.method == "set-rnn" or record.name == "sigmoid-1"
        else record
        for record in records
    ]
    tables = tables_of(Study.of(comparison, records, 99))
    assert row_of(tables["systems"], "set-rnn")["instance-F1"] == "failed"
    assert row_of(tables["best-rules"], "set-rnn")["instance-F1 (rule f1)"] == "failed"
    assert row_of(tables["systems"], "sigmoid")["instance-F1"].remark == "2 of 3 runs"
    assert "rules" not in tables


def test_labels_are_counted_by_hand():
    comparison = Comparison(
        "made-up",
        "0",
        True,
        {"test": 3},
        False,
        ("a", "b", "c"),
        (1, 1, 1),
        ids=("0", "1", "2"),
        truth=[[1], [0, 1], [1]],
    )
    runs = [
        Record("one", seed, "0", "set", test=TestResults({"set": sets}, {}))
        for seed, sets in enumerate(([[1], [1], [0]], [[1], [0, 1], [1]]))
    ]
    table = labels_table(Study.of(comparison, runs))
    assert table.rows == [1, 0]  # c has no document
    found = row_of(table, 1)
    assert (found["label"], found["documents"]) == ("b", 3)
    assert found["one"] == pytest.approx((0.8 + 1) / 2)


def predict_only(record, documents, truth):
    """Predict the true set for some documents, and nothing for the others."""
    sets = [row if number in documents else [] for number, row in enumerate(truth)]
    return replace(record, test=TestResults({record.own_rule: sets}, {}))


def test_recall_and_f1_are_those_of_the_documents_with_unseen_sets():
    comparison, records = made_comparison(("br", "pcc"), n_documents=100)
    full = [row for row, labels in enumerate(comparison.truth) if labels]
    comparison = replace(comparison, unseen_sets=tuple(full[:40]))
    seen = set(range(100)) - set(full[:40])
    made = [
        predict_only(records[0], seen, comparison.truth),
        predict_only(records[1], set(full[:10]), comparison.truth),
    ]
    table = unseen_sets_table(Study.of(comparison, made))
    br, pcc = row_of(table, "br"), row_of(table, "pcc")
    assert br["unseen: recall"].value == 0
    assert br["seen: F1"].value == 1
    assert pcc["unseen: recall"].value == pcc["unseen: F1"].value == 0.25
    assert pcc["unseen: F1"].low < 0.25 < pcc["unseen: F1"].high
    assert pcc["unseen: recall"].mark == "best"
    assert not unseen_sets_table(Study.of(replace(comparison, unseen_sets=()), records)).rows


def test_a_search_that_misses_half_of_a_set_is_shown_so():
    comparison, records = made_comparison(("set-rnn",), n_seeds=2, n_documents=60)
    chosen = [row for row, labels in enumerate(comparison.truth) if len(labels) == 2]
    exact = np.full(len(chosen), -1.0)
    sums = SetSums(chosen, [1, 12], [(exact - np.log(2)).tolist(), exact.tolist()], exact.tolist())
    made = [replace(each, test=replace(each.test, set_sums=sums)) for each in records]
    table = set_sums_table(Study.of(comparison, made))
    assert row_of(table, ("set-rnn", 1))["2 labels"] == pytest.approx(0.5)
    assert row_of(table, ("set-rnn", 12))["2 labels"] == 0
    assert not set_sums_table(Study.of(comparison, [replace(made[0], test=None)])).rows


def test_the_likelihood_of_the_true_set_is_a_column_with_an_interval(study, tables):
    for name, entry in study.own().items():
        cell = row_of(tables["systems"], name)[TRUE_SET]
        if name == "mine":
            assert cell is None
        else:
            assert cell.value == pytest.approx(study.draws.mean(entry, LOG_LIKELIHOOD))
            assert cell.low < cell.value < cell.high


def test_the_data_table_has_the_length_of_documents(tables):
    found = row_of(tables["data"], tables["data"].rows[0])
    assert found["words per train document"] == 43.8
    assert found["test documents with an unseen set"] == 20


def test_more_is_accepted_where_less_must_be_right():
    headers = ["accepted at .80", "accepted at .90", "accepted at .95"]
    study = Study.of(*made_comparison(("set-rnn", "br"), n_seeds=2))
    for name in study.systems:
        shares = [row_of(calibration_table(study), name)[each].value for each in headers]
        assert shares == sorted(shares, reverse=True)
    perfect = row_of(calibration_table(Study.of(*compared({"set-rnn": 0.0}))), "set-rnn")
    assert [perfect[each].value for each in headers] == [1, 1, 1]
    recorded = study.systems["set-rnn"].recorded("calibration_error_raw")
    assert perfect["sets: error before"].value == recorded[0]


def test_predictions_without_probabilities_have_no_row():
    comparison, (record,) = made_comparison(("br",), n_documents=40)
    bare = replace(record, scores={}, test=replace(record.test, probability={}))
    assert not calibration_table(Study.of(comparison, [bare])).rows


def test_measures_in_the_hierarchy_are_those_of_the_records():
    comparison, records = made_comparison(("br", "pcc"), n_documents=60)
    values = dict.fromkeys(HIERARCHICAL_MEASURES, 0.5)
    scored = [replace(each, scores={"test": {each.own_rule: values}}) for each in records]
    with_tree = replace(comparison, parents={comparison.labels[0]: ["above"]})
    found = row_of(hierarchy_table(Study.of(with_tree, scored)), "br")
    assert [found[each] for each in HIERARCHICAL_MEASURES.values()] == [Estimate(0.5)] * len(values)
    assert not hierarchy_table(Study.of(comparison, records)).rows


def spread_case(document, truth, best=("a", "b")):
    """Return a document whose best sequence is {a}, and whose most probable set is another."""
    sequences = ((["a"], 0.3, 0.3, True), (best, 0.25, 0.46, False), (best[::-1], 0.2, 0.46, False))
    names = ("labels", "probability", "set_probability", "is_exact")
    rows = [dict(zip(names, each, strict=True)) for each in sequences]
    return {"id": f"doc-{document}", "truth": truth, "sequences": rows}


def test_a_right_set_unlike_the_best_sequence_is_shown():
    comparison, records = made_comparison(("seq2seq-rnn", "set-rnn"), 1, 20)
    wrong, right = spread_case(1, ["c"]), spread_case(2, ["a", "b"])
    same = spread_case(3, ["a"], best=("a",))

    def shown(first, second):
        cases = zip(records, (first, second), strict=True)
        made = [replace(record, cases=found) for record, found in cases]
        return sequences_table(Study.of(comparison, made))

    table = shown([], [same, wrong, right])
    assert "doc-2" in table.caption
    assert [list(map(str, column)) for column in table.values.values()] == [
        ["a", "a → b", "b → a"],
        ["0.3", "0.25", "0.2"],
        ["0.3000", "≥ 0.4600", "≥ 0.4600"],
        ["", *["the most probable set, the true set"] * 2],
    ]
    assert "set-rnn" in shown([right], [wrong]).caption
    assert not shown([same], [same]).rows
