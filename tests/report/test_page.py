import re
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
        self.levels, self.ids, self.tags, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append((tag, found))
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])


@pytest.fixture
def outline(page):
    parser = Outline()
    parser.feed(page)
    return parser


def test_headings_go_down_one_level_at_a_time(outline):
    assert outline.levels[0] == 1
    assert outline.levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(outline.levels, outline.levels[1:], strict=False))


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


def test_findings_come_before_tables_and_figures(outline):
    places = [outline.ids.index(name) for name in ("findings", "systems", "figures", "settings")]
    assert places == sorted(places)


def test_names_that_look_like_html_are_text(page):
    assert NASTY not in page
    assert escape(NASTY) in page
    assert "<script>" in page  # our own
    assert page.count("<script>") == 1


def test_templates_escape_all_but_what_python_marks_as_safe():
    environment = _environment()
    assert environment.autoescape is True
    for name in environment.list_templates(extensions=["html"]):
        source, _, _ = environment.loader.get_source(environment, name)
        assert not re.search(r"\|\s*safe|autoescape", source)
        environment.get_template(name)


def test_every_table_has_a_caption_and_every_figure_words(page, outline):
    n_tables = sum(tag == "table" for tag, _ in outline.tags)
    assert n_tables == sum(tag == "caption" for tag, _ in outline.tags)
    pictures = [found for tag, found in outline.tags if found.get("class") == "picture"]
    assert pictures
    assert all(len(found["aria-label"]) > 10 for found in pictures)


def test_what_limits_the_numbers_is_said(page):
    for words in (
        "data is synthetic",
        "had no valid part",
        "1 of 24 runs failed",
        "Up to 3 runs shared the machine",
        "predictions of other were made elsewhere",
        "sgm was trained with one seed only",
        "test part has only 120 documents",
    ):
        assert words in page


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


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first, second):
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_text_is_told_from_its_ground_in_light_dark_and_print(page):
    """4.5 to 1 at least, as WCAG AA asks."""
    roots = re.findall(r":root \{(.*?)\}", page, re.DOTALL)
    assert len(roots) == 3
    for root in roots:
        colours = {
            name: value if len(value) == 7 else "#" + "".join(2 * each for each in value[1:])
            for name, value in re.findall(r"--([\w-]+): (#[0-9a-f]+)", root)
        }
        pairs = [
            (text, ground)
            for text in ("ink", "soft", "link")
            for ground in ("page", "card", "note")
        ]
        pairs += [(name, f"{name}-back") for name in ("right", "wrong", "part", "open")]
        for text, ground in pairs:
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
