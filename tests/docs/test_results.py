"""The scripts of docs/results, and the tables and pictures that they made."""

import json

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


def test_only_words_of_free_data_are_given_away():
    stored = {file.stem.removeprefix("attention-") for file in RESULTS.glob("attention-*.svg")}
    assert stored == set(attention.FREE)
