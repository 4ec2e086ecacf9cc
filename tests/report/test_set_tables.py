"""Tables of what only sets can show: known answers, and what is missing."""

from dataclasses import replace

import numpy as np
import pytest

from made_comparison import made_comparison
from setrnn.comparison.records import SetSums, TestResults
from setrnn.comparison.statistics import bootstrap
from setrnn.report.score_tables import TRUE_SET, systems_table
from setrnn.report.set_tables import (
    restrict,
    set_sums_table,
    unseen_sets_table,
)
from setrnn.report.tables import data_table


def predict_only(record, documents, truth):
    """Predict the true set for some documents, and nothing for the others."""
    sets = [row if number in documents else [] for number, row in enumerate(truth)]
    return replace(record, test=TestResults({record.own_rule: sets}, {}, {}))


def test_recall_and_f1_are_those_of_the_documents_with_unseen_sets():
    comparison, records = made_comparison(("br", "pcc"), n_documents=100)
    full = [row for row, labels in enumerate(comparison.truth) if labels]
    comparison = replace(comparison, unseen_sets=tuple(full[:40]))
    seen = set(range(100)) - set(full[:40])
    made = [
        predict_only(records[0], seen, comparison.truth),
        predict_only(records[1], set(full[:10]), comparison.truth),
    ]
    table = unseen_sets_table(comparison, made)
    values = {row.name: dict(zip(table.headers, row.cells, strict=True)) for row in table.rows}
    assert values["br"]["unseen: recall"].value == 0
    assert values["br"]["seen: F1"].value == 1
    assert values["pcc"]["unseen: recall"].value == values["pcc"]["unseen: F1"].value == 0.25
    assert values["pcc"]["unseen: F1"].more["low"] < 0.25 < values["pcc"]["unseen: F1"].more["high"]
    assert values["pcc"]["unseen: recall"].is_best
    assert not unseen_sets_table(replace(comparison, unseen_sets=()), records).rows


def test_restricting_keeps_ids_sets_and_predictions_together():
    comparison, records = made_comparison(("set-rnn",), n_seeds=1, n_documents=30)
    some, (record,) = restrict(comparison, records, [3, 7])
    assert some.ids == (comparison.ids[3], comparison.ids[7])
    own = records[0].test.predicted["set"]
    assert record.test.predicted == {"set": [own[3], own[7]]}


def test_a_search_that_misses_half_of_a_set_is_shown_so():
    comparison, records = made_comparison(("set-rnn",), n_seeds=2, n_documents=60)
    chosen = [row for row, labels in enumerate(comparison.truth) if len(labels) == 2]
    exact = np.full(len(chosen), -1.0)
    sums = SetSums(chosen, [1, 12], [(exact - np.log(2)).tolist(), exact.tolist()], exact.tolist())
    made = [replace(each, test=replace(each.test, set_sums=sums)) for each in records]
    table = set_sums_table(comparison, made)
    assert table.headers == ["K", "2 labels"]
    one, twelve = table.rows
    assert one.cells[1].value == pytest.approx(0.5)
    assert one.cells[1].more["log p exact"] == pytest.approx(-1)
    assert twelve.cells[1].value == 0
    assert not set_sums_table(comparison, [replace(made[0], test=None)]).rows


def test_the_likelihood_of_the_true_set_is_a_column_with_an_interval():
    comparison, records = made_comparison(("br", "set-rnn"), n_documents=80)
    table = systems_table(records, bootstrap(comparison, records, draws=199))
    place = list(table.headers).index(TRUE_SET)
    for row in table.rows:
        runs = [each.test.true_log_probs for each in records if each.method == row.name]
        assert row.cells[place].value == pytest.approx(np.mean(runs))
        assert row.cells[place].more["low"] < np.mean(runs) < row.cells[place].more["high"]


def test_the_data_table_has_the_length_of_documents():
    comparison, _ = made_comparison(("br",), n_documents=40)
    table = data_table(comparison)
    cells = dict(zip(table.headers, table.rows[0].cells, strict=True))
    assert cells["words per train document"].value == 43.8
    assert cells["test documents with an unseen set"].value == 8
