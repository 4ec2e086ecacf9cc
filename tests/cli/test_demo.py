import sys
from types import SimpleNamespace

import pytest

from fake_runs import fake_run, run_here
from setrnn.cli import demo
from setrnn.comparison.records import Comparison, load_records


@pytest.fixture
def quick_demo(monkeypatch):
    """The demo without training, and a report that is only a name."""
    monkeypatch.setattr("setrnn.comparison.jobs.run", fake_run)
    monkeypatch.setattr("setrnn.comparison.pool.run_jobs", run_here)
    monkeypatch.setattr("setrnn.cli.comparing._make_vectors", lambda *_: None)
    fake = SimpleNamespace(
        build_report=lambda folder: SimpleNamespace(page=folder / "report" / "index.html")
    )
    monkeypatch.setitem(sys.modules, "setrnn.report.build", fake)


@pytest.mark.usefixtures("quick_demo")
def test_the_demo_shows_results_documents_and_an_explanation(setrnn, tmp_path):
    result = setrnn("demo", "--out", tmp_path / "demo")
    assert result.code == 0, result.err
    assert "synthetic" in result.out.lower()
    shown = [kind for kind in demo.KINDS.values() if kind in result.out]
    assert "here the systems differ" in shown
    assert result.out.count("truth") == len(shown) + 1
    assert "set-rnn explains " in result.out
    assert " → " in result.out
    for command in ("predict", "explain"):
        assert f"{command} {tmp_path}/demo/models/set-rnn-0" in result.err
    assert f"{tmp_path}/demo/report/index.html" in result.err.splitlines()[-1]
    records = load_records(tmp_path / "demo", Comparison.load(tmp_path / "demo"))
    assert {record.method for record in records} == set(demo.METHODS)
    row = next(line for line in result.out.splitlines() if "pcc" in line)
    scores = next(record.scores["test"]["set"] for record in records if record.method == "pcc")
    assert f"{scores['micro_f1']:.3f}" in row


@pytest.mark.usefixtures("quick_demo")
def test_a_stopped_demo_goes_on_where_it_was(setrnn, tmp_path, monkeypatch):
    def interrupt(task, on_progress):
        if task.method == "br":
            raise KeyboardInterrupt
        return fake_run(task, on_progress)

    monkeypatch.setattr("setrnn.comparison.jobs.run", interrupt)
    result = setrnn("demo", "--out", tmp_path / "demo")
    assert result.code == 130
    assert "the same command goes on" in result.err
    monkeypatch.setattr("setrnn.comparison.jobs.run", fake_run)
    assert "runs are done already" in setrnn("demo", "--out", tmp_path / "demo").err
