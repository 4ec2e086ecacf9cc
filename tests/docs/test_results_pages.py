"""The tables and pictures of the pages are those of docs/results."""

import importlib.util
import json
import re
import shutil
from pathlib import Path
from statistics import fmean

import pytest

from setrnn.comparison.records import Comparison, load_records
from setrnn.comparison.statistics import Entry, bootstrap, holm
from setrnn.report.wording import format_change, format_p

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
def test_objectives_claims_and_verdicts_are_those_of_the_code(data):
    for file, text in make.refreshed_files(data).items():
        assert file.read_text(encoding="utf-8") == text


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


def test_a_changed_number_is_noticed(tmp_path, monkeypatch):
    page = tmp_path / "README.md"
    page.write_text(re.sub(r"\.7\d\d\b", ".999", readme()))
    monkeypatch.setitem(make.PAGES, page, {"systems": make.PAGES[ROOT / "README.md"]["systems"]})
    assert page.read_text() != make.with_tables(page)


def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "archive",
    sorted(RESULTS.rglob("records.zip")),
    ids=lambda a: str(a.parent.relative_to(RESULTS)),
)
def test_kept_records_give_the_scores(archive, tmp_path):
    shutil.unpack_archive(archive, tmp_path)
    records = load_records(tmp_path, Comparison.load(tmp_path), pytest.fail)
    scores = json.loads((archive.parent / "summary.json").read_text())["scores"]
    assert {record.method for record in records} == set(scores)
    for method in scores:
        runs = [record for record in records if record.method == method]
        mean = fmean(run.scores["test"][run.own_rule]["instance_f1"] for run in runs)
        assert scores[method][runs[0].own_rule]["instance_f1"]["mean"] == pytest.approx(mean)


def test_the_control_of_vinyals_max_follows_from_the_kept_records(tmp_path):
    shutil.unpack_archive(RESULTS / "debtags" / "records.zip", tmp_path)
    shutil.unpack_archive(ROOT / "benchmarks" / "records" / "direct-40-debtags.zip", tmp_path)
    comparison = Comparison.load(tmp_path)
    with_start, direct = Entry("vinyals-max", "sequence"), Entry("vinyals-max-direct", "sequence")
    records = [
        each
        for each in load_records(tmp_path, comparison)
        if each.method in (with_start.system, direct.system)
    ]
    epochs = {each.method: each.config["training"]["epochs"] for each in records}
    assert epochs == {"vinyals-max": 20, "vinyals-max-direct": 40}
    draws = bootstrap(comparison, records)
    measures = ("label_f1", "instance_f1")
    found = [draws.difference(with_start, direct, measure) for measure in measures]
    page = (ROOT / "docs" / "replication.md").read_text(encoding="utf-8")
    for measure, each, p in zip(measures, found, holm([each.p for each in found]), strict=True):
        low, high = (format_change(value, measure) for value in (each.low, each.high))
        said = f"{format_change(each.mean, measure)} ({low} to {high}, {format_p(p)}"
        assert said in page
