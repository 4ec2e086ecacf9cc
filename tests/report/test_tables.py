"""Tables say what the statistics say, and cope with what is missing."""

from dataclasses import replace

import pytest

from made_comparison import ERRORS, made_comparison
from setrnn.comparison.records import GIVEN, Comparison, Failure, Record, TestResults
from setrnn.comparison.statistics import Entry, bootstrap, holm
from setrnn.methods import METHODS
from setrnn.metrics import MEASURES
from setrnn.report.label_table import labels_table
from setrnn.report.tables import make_tables
from setrnn.systems.registry import find_system

NAMES = ["objectives", "systems", "best-rules", "rules", "all-rules", "differences"]
NAMES += ["unseen-sets", "calibration", "set-sums", "labels", "costs", "data"]


def tables_of(comparison, records, draws=199):
    made = bootstrap(comparison, records, draws=draws)
    return {table.name: table for table in make_tables(comparison, records, made)}, made


def added(comparison, name="mine"):
    return Record(
        method=name,
        seed=0,
        data_hash=comparison.data_hash,
        own_rule=GIVEN,
        test=TestResults({GIVEN: comparison.truth}, {}, {}),
        is_added=True,
    )


@pytest.fixture(scope="module")
def made():
    comparison, records = made_comparison(n_documents=100)
    records = [*records, added(comparison)]
    return comparison, records, *tables_of(comparison, records)


def row_of(table, name):
    return next(row for row in table.rows if row.name == name)


def test_all_tables_are_made_and_every_row_has_a_cell_for_each_header(made):
    _, _, tables, statistics = made
    assert list(tables) == NAMES
    rows = [Entry(row.name, row.cells[0].text) for row in tables["all-rules"].rows]
    assert sorted(rows, key=str) == sorted(statistics.entries, key=str)
    for table in tables.values():
        assert table.rows
        assert all(len(row.cells) == len(table.headers) for row in table.rows)


def test_systems_are_scored_by_their_own_rule_and_marked_by_the_statistics(made):
    _, records, tables, statistics = made
    own = {record.method: Entry(record.method, record.own_rule) for record in records}
    for column, measure in enumerate(MEASURES):
        standing = statistics.standing(list(own.values()), measure)
        for row in tables["systems"].rows:
            cell, entry = row.cells[column], own[row.name]
            assert cell.value == statistics.mean(entry, measure)
            assert cell.is_best == (standing.stands and entry == standing.best)
            assert cell.is_tied == bool(
                entry in standing.tied or (entry == standing.best and standing.tied)
            )
            assert cell.more["p"] == standing.p.get(entry)


def test_only_a_best_that_stands_is_best():
    """A perfect system stands; twins of it do not."""
    comparison, records = made_comparison(("br", "set-rnn"), n_documents=60)
    one, _ = tables_of(comparison, [*records, added(comparison)])
    two, _ = tables_of(comparison, [*records, added(comparison), added(comparison, "twin")])
    assert all(cell.is_best for cell in row_of(one["systems"], "mine").cells[: len(MEASURES)])
    for name in ("mine", "twin"):
        cells = row_of(two["systems"], name).cells[: len(MEASURES)]
        assert not any(cell.is_best for cell in cells)
        assert all(cell.is_tied for cell in cells)


def test_best_rules_score_each_measure_by_its_rule(made):
    _, _, tables, statistics = made
    rules = ("f1", "label-f1", "micro-f1", "set", "hamming")
    for name in ("br", "set-rnn"):
        cells = row_of(tables["best-rules"], name).cells
        for cell, measure, rule in zip(cells, MEASURES, rules, strict=True):
            assert cell.value == statistics.mean(Entry(name, rule), measure)
    assert all(cell.value in (0, 1) for cell in row_of(tables["best-rules"], "mine").cells)


def test_rules_are_of_systems_that_emit_sequences_with_gains_corrected_over_the_table(made):
    _, _, tables, statistics = made
    table = tables["rules"]
    assert [row.name for row in table.rows] == [
        name for name in ERRORS if find_system(METHODS[name]).emits_sequences
    ]
    places = [
        (row.name, measure, rule)
        for row in table.rows
        for measure in ("instance_f1", "label_f1", "micro_f1")
        for rule in ("set", "f1")
    ]
    gains = [
        statistics.difference(Entry(name, rule), Entry(name, "sequence"), measure)
        for name, measure, rule in places
    ]
    cells = [cell for row in table.rows for cell in row.cells]
    corrected = holm([gain.p for gain in gains])
    for cell, gain, p in zip(cells, gains, corrected, strict=True):
        assert (cell.value, cell.more["p"]) == (gain.mean, p)


def test_differences_compare_all_pairs(made):
    _, records, tables, statistics = made
    table = tables["differences"]
    pairs = [(row.name, row.cells[0].text) for row in table.rows]
    assert len(set(pairs)) == 14 * 13 / 2
    own = {record.method: Entry(record.method, record.own_rule) for record in records}
    first, second = own["br"], own["set-rnn"]
    expected = statistics.pairs([own[name] for name in (*ERRORS, "mine")], "label_f1")
    cells = table.rows[pairs.index(("br", "set-rnn"))].cells
    assert (cells[4].value, cells[5].value) == (
        expected[first, second].mean,
        expected[first, second].p,
    )


def test_a_level_pair_says_how_many_documents_would_separate_it_and_each_p_its_tests(made):
    _, _, tables, _ = made
    table = tables["differences"]
    n_tests = 14 * 13 / 2
    for row in table.rows:
        for p, needed in (row.cells[2:4], row.cells[5:7]):
            assert p.more["tests"] == n_tests
            assert bool(needed.text) == (p.value >= 0.05)
    assert f"{n_tests:.0f} pairs" in table.caption
    for name in ("systems", "best-rules", "rules", "differences", "unseen-sets"):
        assert "Holm-corrected over" in tables[name].caption


def test_costs_are_means_over_runs_and_empty_for_added_predictions(made):
    _, records, tables, _ = made
    cells = row_of(tables["costs"], "set-rnn").cells
    assert cells[0].value == 60
    assert not any(cell.text for cell in row_of(tables["costs"], "mine").cells)
    seconds = {"set-rnn-0": 10.0, "set-rnn-1": 20.0, "set-rnn-2": 60.0}
    changed = [
        replace(record, costs=replace(record.costs, training_seconds=seconds[record.name]))
        for record in records
        if record.method == "set-rnn"
    ]
    other, _ = tables_of(made[0], changed)
    cell = row_of(other["costs"], "set-rnn").cells[0]
    assert (cell.value, cell.text, cell.note) == (30, "30", "10 to 60")


def test_a_system_whose_runs_all_failed_says_why_and_others_go_on_with_those_left():
    comparison, records = made_comparison(("br", "set-rnn", "sigmoid"), n_documents=40)
    failure = Failure("MemoryError", "no memory left")
    records = [
        replace(record, test=None, costs=None, scores={}, failure=failure)
        if record.method == "set-rnn" or record.name == "sigmoid-1"
        else record
        for record in records
    ]
    tables, _ = tables_of(comparison, records)
    for name in ("systems", "best-rules", "costs"):
        cell = row_of(tables[name], "set-rnn").cells[0]
        assert (cell.text, cell.value) == ("failed", None)
        assert cell.note == "MemoryError: no memory left"
    assert row_of(tables["systems"], "sigmoid").cells[0].note.endswith("2 of 3 runs")
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
        Record("one", seed, "0", "set", test=TestResults({"set": sets}, {}, {}))
        for seed, sets in enumerate(([[1], [1], [0]], [[1], [0, 1], [1]]))
    ]
    table = labels_table(comparison, runs)
    assert [row.name for row in table.rows] == ["b", "a"]  # c has no document
    documents, of_system = table.rows[0].cells
    assert documents.value == 3
    assert of_system.value == pytest.approx((0.8 + 1) / 2)
    assert "recall 0.833" in of_system.note
    assert "accepted" not in of_system.note
    accepting = [
        replace(run, test=replace(run.test, label_thresholds=limits, n_accepted=[0, 2, 0]))
        for run, limits in zip(runs, ([None, 0.75, None], [None, 0.85, None]), strict=True)
    ]
    rows = {row.name: row.cells[1].note for row in labels_table(comparison, accepting).rows}
    assert rows["b"].endswith("accepted from 0.800: 80%")  # 4 of 5 predictions
    assert rows["a"].endswith("never accepted")
