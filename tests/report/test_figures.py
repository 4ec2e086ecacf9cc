"""Figures are drawn from whatever a comparison has, and what they show is right."""

import re
import warnings
from collections import Counter
from dataclasses import replace
from functools import cache
from io import BytesIO
from itertools import combinations, pairwise
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_study import FAILURE, added

from made_comparison import made_comparison
from setrnn.comparison.records import GIVEN
from setrnn.report.drawing import PAGE_COLOURS, in_page_colours, spread
from setrnn.report.figures import (
    FIGURES,
    MAX_BINS,
    accuracy_at,
    average_epochs,
    average_groups,
    draw_figures,
    draw_reliability,
    group_by_frequency,
    group_by_size,
)
from setrnn.report.study import Study
from setrnn.tagging.trust.acceptance import reliability

SVG = "{http://www.w3.org/2000/svg}"
STARTS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@cache
def drawn():
    return draw(*made_comparison())


def draw(comparison, records):
    return {figure.name: figure for figure in draw_figures(Study.of(comparison, records, 99))}


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def texts(figure):
    return [text.text for text in ElementTree.fromstring(figure.svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_small_svg_with_text_and_numbers_only(name):
    figure = drawn()[name]
    root = ElementTree.fromstring(figure.svg)
    assert root.tag == f"{SVG}svg"
    assert root.get("aria-label")
    assert len(texts(figure)) > 3
    assert not re.search(r"\b(nan|inf)\b", figure.svg, re.IGNORECASE)
    assert len(figure.svg.encode()) < 66_000
    assert not list(root.iter(f"{SVG}style"))  # it would reach into the page
    assert "font-family:" not in figure.svg


def test_ids_are_unique_over_all_figures_and_all_references_are_met():
    page = "".join(figure.svg for figure in drawn().values())
    ids = Counter(re.findall(r'\bid="([^"]+)"', page))
    assert max(ids.values()) == 1
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', page)) <= set(ids)


def test_a_page_gives_its_own_greys():
    svg = in_page_colours(drawn()["systems"].svg)
    assert "var(--ink, #222222)" in svg
    assert not re.search(f": ({'|'.join(PAGE_COLOURS)})", svg)


def test_the_same_records_give_the_same_bytes_and_settings_are_left_alone():
    made = made_comparison(("br", "set-rnn"), n_seeds=2, n_documents=60)
    before = dict(mpl.rcParams)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        again = draw(*made)
    assert again == draw(*made)
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("methods", "n_seeds"),
    [(("set-rnn",), 1), (("br",), 1), (("br", "set-rnn"), 1), (("sigmoid", "pcc"), 2)],
)
def test_few_systems_are_drawn(methods, n_seeds):
    figures = draw(*made_comparison(methods, n_seeds))
    assert ("entropy" in figures) == ("set-rnn" in methods)
    assert ("learning" in figures) == (set(methods) != {"br"})
    assert set(methods) <= set(texts(figures["systems"]))


def test_failed_runs_leave_the_others_drawn():
    comparison, records = made_comparison(("br", "set-rnn", "sgm"), n_seeds=2)
    some = [
        replace(record, test=None, failure=FAILURE) if record.name in ("sgm-1", "br-0") else record
        for record in records
    ]
    figures = draw(comparison, some)
    assert list(figures) == list(FIGURES)
    assert "br" not in texts(figures["systems"])
    assert draw(comparison, [replace(each, test=None, failure=FAILURE) for each in records]) == {}


def test_added_predictions_stand_beside_the_systems():
    comparison, records = made_comparison(("br", "set-rnn"), n_seeds=2)
    assert list(draw(comparison, [added(comparison)])) == ["systems", "set-size", "rare-labels"]
    row = added(comparison, "theirs", **{GIVEN: [0.9] * len(comparison.truth)})
    figures = draw(comparison, [*records, row])
    for name, figure in figures.items():
        assert ("theirs" in texts(figure)) == (name not in ("entropy", "learning"))


def test_nothing_predicted_and_no_true_labels_are_drawn():
    comparison, records = made_comparison(("set-rnn",), n_seeds=1, n_documents=30)
    empty = [[] for _ in comparison.truth]
    test = records[0].test
    predicted = dict.fromkeys(test.predicted, empty)
    nothing = replace(test, predicted=predicted, order_entropy=[None] * len(empty))
    record = replace(records[0], test=nothing)
    assert list(draw(comparison, [record])) == [name for name in FIGURES if name != "entropy"]
    bare = replace(comparison, truth=empty, label_counts=(0,) * comparison.n_labels)
    assert draw(bare, [record])


def test_names_of_systems_are_written_as_they_are():
    comparison, records = made_comparison(("set-rnn",), n_seeds=1, n_documents=60)
    names = ("<i>$1$", "$x$ & <b>", "体育", "a\x00b")
    figures = draw(comparison, [*records, *(added(comparison, name) for name in names)])
    assert {"<i>$1$", "$x$ & <b>", "体育", "a b"} <= set(texts(figures["systems"]))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=10))
def test_names_keep_their_order_a_gap_and_the_limits(wanted):
    placed = spread(wanted, gap=10, low=0, high=100)
    assert all(b - a >= 10 - 1e-6 for a, b in pairwise(sorted(placed)))
    assert placed.min() >= -1e-6
    assert placed.max() <= 100 + 1e-6
    for (a, x), (b, y) in combinations(zip(wanted, placed, strict=True), 2):
        if a < b:
            assert x < y


@given(st.lists(st.integers(0, 10**5), min_size=1, max_size=50))
def test_each_label_is_in_the_one_group_its_count_falls_into(counts):
    of, names = group_by_frequency(counts)
    edges = np.unique(of)
    assert len(edges) == len(names) <= MAX_BINS
    for count, edge in zip(counts, of.tolist(), strict=True):
        assert edge <= count
        assert (edge == 0) == (count == 0)
        assert not ((edges > edge) & (edges <= count)).any()


@pytest.mark.parametrize("measure", ["label_f1", "document_f1"])
def test_group_means_weigh_back_to_the_mean_of_all(measure):
    comparison, records = made_comparison(("set-rnn",), n_seeds=2)
    values = getattr(Study.of(comparison, records).systems["set-rnn"], measure)("set")
    if measure == "label_f1":
        of, _ = group_by_frequency(comparison.label_counts)
    else:
        of, _ = group_by_size(comparison.truth)
    means = average_groups(values, of)
    _, n = np.unique(of, return_counts=True)
    assert np.average(means, weights=n) == pytest.approx(values.mean())
    assert len(means) > 1


def test_the_few_largest_sets_share_a_group():
    sets = [[0]] * 500 + [[0, 1]] * 500 + [list(range(9))] * 3 + [list(range(7))] * 8
    of, names = group_by_size(sets)
    assert names == ["1", "2", "7+"]
    assert np.bincount(of)[[1, 2, 7]].tolist() == [500, 500, 11]


def rows(*values):
    return [{"epoch": number, "f1": value} for number, value in enumerate(values, start=1)]


def test_a_curve_is_the_mean_as_far_as_all_runs_went():
    curve = average_epochs([rows(0.2, 0.4, 0.9), rows(0.4, 0.6)], "f1")
    assert curve.x.tolist() == [1, 2]
    assert curve.y == pytest.approx([0.3, 0.5])
    assert average_epochs([rows(None)], "f1") is None
    assert average_epochs([[{"epoch": 1, "loss": 2.0}], []], "f1") is None


def test_the_most_probable_are_accepted_first_and_all_have_the_accuracy_of_all():
    is_right = np.array([True] * 60 + [False] * 40)
    probs = np.where(is_right, 0.9, 0.1)
    found = accuracy_at(np.array([0.3, 0.6, 0.8, 1.0]), probs, is_right)
    assert found == pytest.approx([1, 1, 0.75, 0.6])


@pytest.mark.parametrize("kind", STARTS)
def test_the_same_numbers_give_the_same_file(kind):
    rng = np.random.default_rng(0)
    probs = rng.random(300)
    before, after = (reliability(probs, rng.random(300) < each) for each in (probs**2, probs))
    files = []
    for _ in range(2):
        file = BytesIO()
        draw_reliability(before, after, file, kind)
        files.append(file.getvalue())
    assert files[0] == files[1]
    assert files[0].startswith(STARTS[kind])
