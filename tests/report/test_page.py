from html import escape
from html.parser import HTMLParser

import pytest
from nasty import NASTY

from setrnn.report.page import show_table, split_settings
from setrnn.report.table import Cell, Row, Table
from setrnn.report.templates import _environment


class Outline(HTMLParser):
    """The headings, ids and elements of a page."""

    def __init__(self):
        super().__init__()
        self.ids, self.tags, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])


@pytest.fixture
def outline(page):
    parser = Outline()
    parser.feed(page)
    return parser


def test_ids_are_unique_and_links_within_the_page_lead_somewhere(outline):
    assert len(outline.ids) == len(set(outline.ids))
    inner = [link[1:] for link in outline.links if link.startswith("#")]
    assert inner
    assert set(inner) <= set(outline.ids)


def test_links_to_files_lead_to_files(outline, built):
    outer = [link for link in outline.links if not link.startswith(("#", "data:"))]
    assert "summary.json" in outer
    assert all((built.page.parent / link).is_file() for link in outer)


def test_nothing_is_fetched(page, outline):
    assert "default-src 'none'" in page
    assert not [tag for tag, found in outline.tags if {"src", "srcset"} & set(found)]
    assert not [tag for tag, _ in outline.tags if tag in ("link", "iframe", "img", "object")]


def test_names_that_look_like_html_are_text(page):
    assert NASTY not in page
    assert escape(NASTY) in page
    assert "<script>" in page  # our own
    assert page.count("<script>") == 1


def test_a_table_keeps_its_values_and_its_best():
    table = Table(
        "t<",
        "T",
        "How to read it.",
        ["a", "never filled"],
        [
            Row("<i>", [Cell(".5 & up", 0.5, is_best=True, note=".4 to .6; p = .1"), Cell("")]),
            Row("y", [Cell(".49", 0.49, is_tied=True), Cell("")]),
            Row("z", [Cell("", None), Cell("")]),
        ],
    )
    macros = _environment().get_template("parts.html").module
    html = str(macros.data_table(show_table(table, {"t<.csv": "<i>,1"})))
    assert 'data-value="0.5"' in html
    assert "<span>.5 &amp; up</span>" in html
    assert "<small>.4 to .6</small><small>p = .1</small>" in html
    assert "never filled" not in html
    assert '<th scope="row">&lt;i&gt;</th>' in html
    assert html.count("is-best") == 1
    assert html.count("is-tied") == 1
    assert html.count("data-value") == 2


def test_settings_part_what_differs_from_what_does_not(comparison_folder):
    from setrnn.comparison.records import Comparison, load_records

    records = load_records(comparison_folder, Comparison.load(comparison_folder))
    settings = split_settings(records, "config")
    assert settings.common == {"model.units": "300"}  # seeds are of every run its own
    records[0] = records[0].__class__(
        **{**records[0].__dict__, "config": {"model": {"units": 100}}}
    )
    settings = split_settings(records, "config")
    assert settings.common == {}
    assert settings.differing["model.units"]["100"] == [records[0].method]
    assert "set-rnn" in settings.differing["model.units"]["300"]
