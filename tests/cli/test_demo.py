import pytest

from fake_runs import fake_run, install_fake_report, install_fake_runs
from setrnn.cli import demo
from setrnn.comparison.records import Comparison, load_records


@pytest.fixture
def quick_demo(monkeypatch):
    """The demo without training, and a report that is only a name."""
    install_fake_runs(monkeypatch)
    monkeypatch.setattr("setrnn.comparison.compare.make_vectors", lambda *_: None)
    install_fake_report(monkeypatch)


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
def test_a_stopped_demo_continues(setrnn, tmp_path, monkeypatch):
    def interrupt(task, on_progress):
        if task.method == "br":
            raise KeyboardInterrupt
        return fake_run(task, on_progress)

    install_fake_runs(monkeypatch, interrupt)
    result = setrnn("demo", "--out", tmp_path / "demo")
    assert result.code == 130
    assert "same command" in result.err
    install_fake_runs(monkeypatch)
    assert "runs are done already" in setrnn("demo", "--out", tmp_path / "demo").err
