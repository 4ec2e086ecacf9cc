from dataclasses import replace

import pytest

from made_comparison import made_comparison
from setrnn.comparison.records import Comparison
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES, Hierarchy, score_in_hierarchy
from setrnn.report.hierarchy_table import hierarchy_table


@pytest.fixture(scope="module")
def closed():
    comparison, records = made_comparison(("br", "pcc"), n_documents=60)
    first, second, *_ = comparison.labels
    comparison = replace(comparison, parents={first: ["above"], second: [first]})
    tree, names = Hierarchy(comparison.parents), comparison.labels
    scores, scored = {}, []
    for record in records:
        sets = (comparison.truth, record.test.predicted[record.own_rule])
        named = ([[names[label] for label in row] for row in rows] for rows in sets)
        scores[record.method] = vars(score_in_hierarchy(tree, *named))
        own = {**record.scores["test"][record.own_rule], **scores[record.method]}
        scored.append(replace(record, scores={"test": {record.own_rule: own}}))
    return comparison, scored, scores


def test_the_table_has_the_measures_with_intervals(closed):
    comparison, records, scores = closed
    table = hierarchy_table(comparison, records)
    assert table.headers == list(HIERARCHICAL_MEASURES.values())
    for row in table.rows:
        found = dict(zip(HIERARCHICAL_MEASURES, row.cells, strict=True))
        for measure, cell in found.items():
            assert cell.value == pytest.approx(scores[row.name][measure])
        f1 = found["hierarchical_f1"]
        assert f1.more["low"] < f1.value < f1.more["high"]


def test_without_a_hierarchy_there_is_no_table(closed):
    comparison, records, _ = closed
    assert not hierarchy_table(replace(comparison, parents=None), records).rows


def test_a_comparison_keeps_its_hierarchy(closed, tmp_path):
    comparison = closed[0]
    comparison.save(tmp_path)
    assert Comparison.load(tmp_path).parents == comparison.parents
