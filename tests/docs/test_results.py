"""The scripts of docs/results, and the tables and pictures that they made."""

import json
from types import SimpleNamespace

import pytest
from doc_pages import ROOT, load_script

RESULTS = ROOT / "docs" / "results"
adjacency, attention, cardinality, make = (
    load_script(RESULTS / f"{name}.py")
    for name in ("adjacency", "attention", "cardinality", "make")
)


@pytest.mark.parametrize(
    "page", list(make.PAGES), ids=lambda each: f"{each.parent.name}/{each.name}"
)
def test_the_tables_of_a_page_are_those_of_the_records(page):
    assert page.read_text(encoding="utf-8") == make.with_tables(page)


@pytest.mark.parametrize("data", make.PLACES)
def test_tables_and_summary_have_the_same_scores(data):
    summary = json.loads((RESULTS / data / "summary.json").read_text())
    for system, row in make._rows(data, "systems").items():
        scores = summary["scores"][system][summary["own_rules"][system]]
        for column, measure in (("instance-F1", "instance_f1"), ("label-F1", "label_f1")):
            assert float(row[column]) == pytest.approx(scores[measure]["mean"])


def test_the_gains_by_set_size_are_those_of_the_records():
    page = (RESULTS / "cardinality.md").read_text(encoding="utf-8")
    assert page == cardinality.write_tables(cardinality.list_gains())


def test_pairs_of_labels_are_counted_as_in_the_paper():
    exhibition, painting, modern, britain = range(4)
    counts = adjacency.Counts.of(
        [[modern, exhibition]] * 19
        + [[exhibition, painting, modern]] * 3
        + [[exhibition, britain]] * 3
        + [[exhibition, painting, britain]] * 9
    )
    pairs = ((exhibition, modern), (exhibition, britain))
    assert [counts.adjacent[pair] for pair in pairs] == [19, 3]
    assert [counts.together[pair] for pair in pairs] == [22, 12]
    assert counts.bias(exhibition, modern, britain) > 1


def test_a_row_of_swaps_replaces_that_of_the_same_comparison():
    comparison = SimpleNamespace(data="arxiv", labels=["a", "b", "c"], ids=["7"])
    counts = adjacency.Counts.of([[0, 1]] * 1200 + [[0, 2]])
    swap = adjacency.Swap(0, 0, 1, 2, is_popular=True)
    study = adjacency.Study(
        comparison,
        "default",
        counts,
        {"seq2seq-rnn": 3, "set-rnn": 0},
        {"seq2seq-rnn": 1, "set-rnn": 0},
        swap,
        n_seeds=2,
    )
    row = study.write()
    assert row.endswith("| `a`, `b`, `c` (7, 2) | 1,200, 1 | 1,200, 1 | 3 (75%), 1 | 0, 0 |")
    page = adjacency.PAGE.read_text(encoding="utf-8")
    changed = adjacency.with_row(page, row).splitlines()
    assert [each for each in changed if each not in page.splitlines()] == [row]
    assert len(changed) == len(page.splitlines())


def test_only_words_of_free_data_are_given_away():
    stored = {file.stem.removeprefix("attention-") for file in RESULTS.glob("attention-*.svg")}
    assert stored == set(attention.FREE)
