import re
import warnings
from collections import Counter
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from made_comparison import made_comparison
from setrnn.comparison.records import GIVEN, Failure, Record, TestResults
from setrnn.report.figures import FIGURES, draw_figures

SVG = "{http://www.w3.org/2000/svg}"


@cache
def drawn():
    return draw_figures(*made_comparison())


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def texts(figure):
    return [text.text for text in ElementTree.fromstring(figure.svg).iter(f"{SVG}text")]


def added(comparison, name="theirs", **probs):
    results = TestResults({GIVEN: [list(row) for row in comparison.truth]}, probs, {})
    return Record(name, 0, comparison.data_hash, GIVEN, test=results, is_added=True)


def test_every_figure_is_drawn_in_order():
    assert [figure.name for figure in drawn()] == list(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_small_svg_with_text_and_numbers_only(name):
    figure = {figure.name: figure for figure in drawn()}[name]
    root = ElementTree.fromstring(figure.svg)
    assert root.tag == f"{SVG}svg"
    assert root.get("aria-label") == figure.alt
    assert len(texts(figure)) > 3
    assert not re.search(r"\b(nan|inf)\b", figure.svg, re.IGNORECASE)
    assert len(figure.svg.encode()) < 66_000
    assert not list(root.iter(f"{SVG}style"))  # it would reach into the page
    assert "font-family:" not in figure.svg


def test_ids_are_unique_over_all_figures_and_all_references_are_met():
    page = "".join(figure.svg for figure in drawn())
    ids = Counter(re.findall(r'\bid="([^"]+)"', page))
    assert max(ids.values()) == 1
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) == set(ids)


def test_the_same_records_give_the_same_bytes_and_settings_are_left_alone():
    made = made_comparison(("br", "set-rnn"), n_seeds=2, n_documents=60)
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        again = draw_figures(*made)
    assert again == draw_figures(*made)
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("methods", "n_seeds"),
    [(("set-rnn",), 1), (("br",), 1), (("br", "set-rnn"), 1), (("sigmoid", "pcc"), 2)],
)
def test_few_systems_are_drawn(methods, n_seeds):
    figures = {f.name: f for f in draw_figures(*made_comparison(methods, n_seeds))}
    emits_orders = "set-rnn" in methods
    assert ("entropy" in figures) == emits_orders
    assert ("orders" in figures) == emits_orders
    assert ("learning" in figures) == (set(methods) != {"br"})
    for name in methods:
        assert name in texts(figures["systems"])


def test_failed_runs_leave_the_others_drawn():
    comparison, records = made_comparison(("br", "set-rnn", "sgm"), n_seeds=2)
    failure = Failure("DivergedError", "The loss is not a number.")
    some = [
        replace(record, test=None, failure=failure) if record.name in ("sgm-1", "br-0") else record
        for record in records
    ]
    figures = draw_figures(comparison, some)
    assert [figure.name for figure in figures] == list(FIGURES)
    assert "br" not in texts(figures[0])
    all_failed = [replace(record, test=None, failure=failure) for record in records]
    assert draw_figures(comparison, all_failed) == []


def test_added_rows_stand_beside_the_systems():
    comparison, records = made_comparison(("br", "set-rnn"), n_seeds=2)
    bare = [figure.name for figure in draw_figures(comparison, [added(comparison)])]
    assert bare == ["systems", "rare-labels", "set-size"]
    row = added(comparison, "theirs", **{GIVEN: [0.9] * len(comparison.truth)})
    figures = {figure.name: figure for figure in draw_figures(comparison, [*records, row])}
    for name in ("systems", "rare-labels", "set-size", "accepted", "reliability"):
        assert "theirs" in texts(figures[name])
    for name in ("training-time", "entropy", "learning"):
        assert "theirs" not in texts(figures[name])


def test_nothing_predicted_and_no_true_labels_are_drawn():
    comparison, records = made_comparison(("set-rnn",), n_seeds=1, n_documents=30)
    empty = [[] for _ in comparison.truth]
    test = records[0].test
    nothing = replace(
        test,
        predicted=dict.fromkeys(test.predicted, empty),
        order_entropy=[None] * len(empty),
        true_orders=empty,
    )
    record = replace(records[0], test=nothing)
    names = [figure.name for figure in draw_figures(comparison, [record])]
    assert names == [name for name in FIGURES if name not in ("entropy", "orders")]
    bare = replace(comparison, truth=empty, label_counts=(0,) * comparison.n_labels)
    assert draw_figures(bare, [record])


def test_names_of_labels_and_rows_are_written_as_they_are():
    comparison, records = made_comparison(("set-rnn",), n_seeds=1, n_documents=60)
    labels = ("$x$ & <b>", "体育", "a\x00b", *comparison.labels[3:])
    comparison = replace(comparison, labels=labels)
    figures = {
        figure.name: figure
        for figure in draw_figures(comparison, [*records, added(comparison, "<i>$1$")])
    }
    assert {"$x$ & <b>", "体育", "a b"} <= set(texts(figures["orders"]))
    assert "<i>$1$" in texts(figures["systems"])
    for figure in figures.values():
        ElementTree.fromstring(figure.svg)
