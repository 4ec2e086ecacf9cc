"""The tables and pictures of the pages are those of docs/results."""

import importlib.util
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from setrnn.comparison.records import Comparison, load_records
from setrnn.comparison.statistics import LOG_LIKELIHOOD, Entry, bootstrap, holm
from setrnn.report.wording import format_change, format_decimal, format_p, format_score

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
    ids=lambda a: a.parent.parent.name + a.parent.name,
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


@pytest.fixture(scope="module")
def longer(tmp_path_factory):
    """The comparison on debtags, and its records of 20 epochs and, by other names, of 40."""
    folder = tmp_path_factory.mktemp("records")
    shutil.unpack_archive(RESULTS / "debtags" / "records.zip", folder / "20")
    shutil.unpack_archive(ROOT / "benchmarks" / "records" / "epochs-40-debtags.zip", folder / "40")
    comparison = Comparison.load(folder / "20")
    long = load_records(folder / "40", Comparison.load(folder / "40"))
    names = {"vinyals-max", *(each.method for each in long)}
    short = [each for each in load_records(folder / "20", comparison) if each.method in names]
    assert {each.config["training"]["epochs"] for each in short} == {20}
    assert {each.config["training"]["epochs"] for each in long} == {40}
    renamed = [replace(each, method=f"{each.method} 40") for each in long]
    return comparison, short, renamed


def say_differences(draws, first, second, measures):
    """The differences of two entries as a page says them, Holm-corrected over the measures."""
    found = [draws.difference(first, second, measure) for measure in measures]
    for measure, each, p in zip(measures, found, holm([each.p for each in found]), strict=True):
        low, high = (format_change(value, measure) for value in (each.low, each.high))
        yield f"{format_change(each.mean, measure)} ({low} to {high}, {format_p(p)}"


def test_the_control_of_vinyals_max_follows_from_the_kept_records(longer):
    comparison, short, long = longer
    with_start, direct = (Entry(name, "sequence") for name in ("vinyals-max", "vinyals-max-direct"))
    # By its own name, as in a report: the draws depend on the names.
    chosen = [each for each in short if each.method == with_start.system]
    chosen += [replace(each, method=direct.system) for each in long if direct.system in each.method]
    draws = bootstrap(comparison, chosen)
    page = (ROOT / "docs" / "replication.md").read_text(encoding="utf-8")
    for said in say_differences(draws, with_start, direct, ("label_f1", "instance_f1")):
        assert said in page


@pytest.mark.parametrize("system", ["seq2seq-rnn", "vinyals-max-direct", "sigmoid"])
def test_what_longer_training_gives_follows_from_the_kept_records(system, longer):
    comparison, short, long = longer
    runs = [each for each in short if each.method == system]
    more = [each for each in long if each.method == f"{system} 40"]
    draws = bootstrap(comparison, [*runs, *more])
    rule = runs[0].own_rule
    entries = Entry(more[0].method, rule), Entry(system, rule)
    page = (ROOT / "docs" / "replication.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{system}` \| .* → .* → .*$", page, re.MULTILINE)
    measures = ("instance_f1", "label_f1")
    for measure, said in zip(measures, say_differences(draws, *entries, measures), strict=True):
        after, before = (format_score(draws.summary(e, measure).mean, measure) for e in entries)
        assert f"{before} → {after}, {said}" in row
    told = re.search(r"log p\(true set\) is (.*) instead of (.*) \(p < .001", page)
    for entry, numbers in zip(entries, told.groups(), strict=True):
        mean = format_decimal(draws.mean(entry, LOG_LIKELIHOOD), 2)
        assert mean in numbers.replace("\N{MINUS SIGN}", "-")
    assert draws.difference(*entries, LOG_LIKELIHOOD).p < 0.001
    epochs = [", ".join(str(each.best_epoch) for each in of) for of in (runs, more)]
    assert row.endswith(f"| {epochs[0]} → {epochs[1]} |")
