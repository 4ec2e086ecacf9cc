from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import pytest

from made_comparison import NASTY
from setrnn.comparison.records import Comparison, load_records
from setrnn.report.summary import split_settings


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


def test_ids_are_unique_and_links_lead_somewhere(outline, built):
    assert len(outline.ids) == len(set(outline.ids))
    inner = {link[1:] for link in outline.links if link.startswith("#")}
    assert inner <= set(outline.ids)
    outer = [link for link in outline.links if not link.startswith(("#", "data:"))]
    assert "summary.json" in outer
    assert all((built.page.parent / link).is_file() for link in outer)


def test_the_page_opens_with_the_answer_and_the_best_system(page, built):
    start = " ".join(page[page.index('id="answer"') :].split())
    assert escape(" ".join(built.answer[1:])) in start
    scores = [row[1].value for row in built.systems.cells if row[1].value is not None]
    assert scores == sorted(scores, reverse=True)
    assert built.systems.cells[0][0].text in built.answer[0]


def test_nothing_is_fetched(page, outline):
    assert "default-src 'none'" in page
    assert not [tag for tag, found in outline.tags if {"src", "srcset"} & set(found)]
    assert not [tag for tag, _ in outline.tags if tag in ("link", "iframe", "img", "object")]


def test_names_that_look_like_html_are_text(page):
    assert NASTY not in page
    assert escape(NASTY) in page
    assert "<script>" in page  # our own
    assert page.count("<script>") == 1


def test_settings_part_what_differs_from_what_does_not(comparison_folder):
    records = load_records(comparison_folder, Comparison.load(comparison_folder))
    settings = split_settings(records, "config")
    assert settings["common"] == {"model.units": "300"}  # seeds are of every run its own
    records[0] = replace(records[0], config={"model": {"units": 100}})
    settings = split_settings(records, "config")
    assert settings["common"] == {}
    assert settings["differing"]["model.units"]["100"] == [records[0].method]
    assert "set-rnn" in settings["differing"]["model.units"]["300"]
