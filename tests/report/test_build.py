import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from made_comparison import made_comparison
from setrnn.errors import DataError
from setrnn.report.build import build_report

VERDICTS = ("holds", "does not hold", "not shown")


@pytest.fixture
def without_figures(monkeypatch):
    """Drawing takes most of the time."""
    monkeypatch.setattr("setrnn.report.build.draw_figures", lambda study: [])


def save(folder, comparison, records):
    comparison.save(folder)
    for record in records:
        record.save(folder)
    return folder


def test_all_files_are_there_and_named(built, comparison_folder):
    folder = comparison_folder / "report"
    assert built.page == folder / "index.html"
    there = {file for file in folder.rglob("*") if file.is_file()}
    assert there == set(built.files)
    assert {file.suffix for file in (folder / "tables").iterdir()} == {".csv", ".md"}
    assert all(file.suffix == ".svg" for file in (folder / "figures").iterdir())
    assert all(file.stat().st_size for file in there)


def test_the_summary_has_the_scores_and_the_verdicts(built, comparison_folder):
    summary = json.loads((built.page.parent / "summary.json").read_text(encoding="utf-8"))
    scores = summary["scores"]["set-rnn"]["set"]["instance_f1"]
    assert scores["n_seeds"] == 2
    assert scores["low"] < scores["mean"] < scores["high"]
    assert summary["own_rules"]["seq2seq-rnn"] == "sequence"
    assert "sgm-1" in summary["failures"]
    likelihood = summary["set_log_likelihood"]["set-rnn"]
    assert likelihood["low"] < likelihood["mean"] < likelihood["high"] <= 0
    assert "other" not in summary["set_log_likelihood"]  # added predictions have none
    for finding in summary["papers_findings"]:
        assert finding["verdict"] in VERDICTS
        assert set(finding["difference"]) == {"mean", "low", "high", "p"}


def test_the_scores_are_those_of_the_records_and_progress_is_shown(tmp_path, without_figures):
    comparison, records = made_comparison(("br", "set-rnn"), 1, 60)
    events = []
    report = build_report(save(tmp_path, comparison, records), on_progress=events.append)
    assert {"tables", "figures"} < {each.detail for each in events}
    assert events[-1].share == 1
    summary = json.loads((report.page.parent / "summary.json").read_text(encoding="utf-8"))
    for record in records:
        for rule in record.test.predicted:
            found = summary["scores"][record.method][rule]["label_f1"]["mean"]
            assert found == pytest.approx(record.scores["test"][rule]["label_f1"])


def test_the_same_records_make_the_same_report(tmp_path, without_figures):
    folder = save(tmp_path / "all", *made_comparison(("br", "set-rnn"), 1, 40))
    one = build_report(folder, tmp_path / "one")
    two = build_report(folder, tmp_path / "two")
    for first, second in zip(one.files, two.files, strict=True):
        assert first.read_bytes() == second.read_bytes()


def test_a_report_of_failures_alone_is_made(tmp_path):
    comparison, records = made_comparison(("br", "sgm"), 1, 25)
    failed = [replace(record, test=None, costs=None, scores={}, cases=[]) for record in records]
    text = build_report(save(tmp_path, comparison, failed)).page.read_text(encoding="utf-8")
    assert "No run succeeded" in text


def test_a_damaged_record_is_a_caveat_and_the_others_are_shown(tmp_path, without_figures):
    folder = save(tmp_path, *made_comparison(("br", "sgm"), 1, 25))
    (folder / "runs" / "sgm-0.json").write_bytes(b"")
    report = build_report(folder)
    assert list(report.systems.rows) == ["br"]
    assert "sgm-0.json is damaged" in report.caveats[0]
    assert "sgm-0.json is damaged" in report.page.read_text(encoding="utf-8")


def test_an_old_report_stays_when_a_new_one_fails(tmp_path, monkeypatch, without_figures):
    folder = save(tmp_path, *made_comparison(("br",), 1, 25))
    report = build_report(folder)
    before = {file: file.read_bytes() for file in report.files}
    write, written = Path.write_text, []

    def fail_at_the_third(file, *arguments, **options):
        written.append(file)
        if len(written) == 3:
            raise OSError("the disk is full")
        return write(file, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", fail_at_the_third)
    with pytest.raises(OSError, match="full"):
        build_report(folder)
    assert {file: file.read_bytes() for file in report.files} == before
    assert sorted(each.name for each in folder.iterdir()) == ["comparison.json", "report", "runs"]


def test_a_folder_that_is_no_report_is_not_replaced(tmp_path):
    folder = save(tmp_path / "all", *made_comparison(("br",), 1, 25))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="not empty and holds no report"):
        build_report(folder, mine)
    assert (mine / "thesis.txt").read_text() == "years of work"
    for place in (folder, tmp_path):
        with pytest.raises(DataError, match="holds the comparison"):
            build_report(folder, place)


def test_neither_torch_nor_pyplot_is_loaded(tmp_path):
    folder = save(tmp_path, *made_comparison(("br", "set-rnn"), 1, 25))
    code = (
        "import sys; from pathlib import Path; from setrnn.report.build import build_report; "
        f"build_report(Path({str(folder)!r})); "
        "print([name for name in ('torch', 'matplotlib.pyplot') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
