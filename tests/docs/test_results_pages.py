"""The tables and pictures of the pages are those of docs/results."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"

specification = importlib.util.spec_from_file_location("make_results", RESULTS / "make.py")
make = importlib.util.module_from_spec(specification)
specification.loader.exec_module(make)


@pytest.mark.parametrize(
    "page", list(make.PAGES), ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_the_tables_of_a_page_are_those_of_the_records(page):
    assert page.read_text(encoding="utf-8") == make.with_tables(page)


@pytest.mark.parametrize("data", make.PLACES)
def test_tables_and_summary_have_the_same_scores(data):
    scores = json.loads((RESULTS / data / "summary.json").read_text())["scores"]
    own = json.loads((RESULTS / data / "summary.json").read_text())["own_rules"]
    for system, row in make._rows(data, "systems").items():
        for column, measure in (("instance-F1", "instance_f1"), ("label-F1", "label_f1")):
            assert float(row[column]) == pytest.approx(scores[system][own[system]][measure]["mean"])


def test_the_table_of_all_datasets_is_made_of_theirs():
    for file, text in make.joint_files().items():
        assert file.read_text(encoding="utf-8") == text


def test_the_pictures_of_the_readme_show_the_records():
    pictures = re.findall(r"\]\((docs/results/(\w+)/figures/[\w-]+\.svg)\)", readme())
    assert pictures
    for picture, data in pictures:
        told = re.search(r'aria-label="([^"]*)"', (ROOT / picture).read_text())[1]
        best = make._rows(data, "best-rules")
        highest = max(float(row["instance-F1 (rule f1)"]) for row in best.values())
        assert f"{highest:.3f}".removeprefix("0") in told


def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")
