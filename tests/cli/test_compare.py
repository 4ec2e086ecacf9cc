"""`setrnn compare`: options, exit codes and what is printed; the rest is `setrnn.compare`'s."""

import pytest

from fake_runs import fake_run, install_fake_report, install_fake_runs
from setrnn.comparison.records import Comparison


@pytest.fixture
def page(monkeypatch):
    install_fake_report(monkeypatch)


@pytest.fixture
def ran(monkeypatch, page):
    """Make runs of no cost, in this process; the names of those that were made."""
    return install_fake_runs(monkeypatch)


@pytest.fixture
def compare(setrnn, corpus, tmp_path):
    def run(*options, data=corpus):
        out = ("--out", tmp_path / "out", "--set", "vectors.source=none")
        return setrnn("compare", data, *out, *options)

    return run


def test_the_results_and_the_page_are_shown_and_the_command_is_kept(compare, ran, tmp_path):
    result = compare("--methods", "br,set-rnn-exact", "--seeds", 2)
    assert result.code == 0, result.err
    assert ran == ["set-rnn-exact-0", "set-rnn-exact-1", "br-0"]
    assert "3 of 3 runs" in result.err
    assert "Use br." in result.out
    assert "report/index.html" in result.err.splitlines()[-1]
    (command,) = Comparison.load(tmp_path / "out").commands
    assert command.startswith("setrnn compare")


def test_a_failed_run_is_a_warning_and_all_failed_runs_an_error(compare, page, monkeypatch):
    def fail(task, on_progress):
        if task.method in failing:
            raise ZeroDivisionError("nothing there")
        return fake_run(task, on_progress)

    install_fake_runs(monkeypatch, fail)
    failing = {"br", "pcc"}
    result = compare("--methods", "br,pcc")
    assert result.code == 1
    assert len(result.error_lines) == 1
    assert "Every run failed (2)" in result.error_lines[0]
    failing.remove("br")
    result = compare("--methods", "br,pcc")
    assert result.code == 0
    assert "pcc-0: failed: ZeroDivisionError: nothing there" in result.err
    assert "1 failed" in result.err


def test_every_option_reaches_the_comparison(compare, monkeypatch, page, tmp_path):
    tasks = []

    def run(task, on_progress):
        tasks.append(task)
        return fake_run(task, on_progress)

    install_fake_runs(monkeypatch, run)
    file = tmp_path / "settings.json"
    file.write_text('{"classical": {"l1": 0.5}}')
    options = ("--budget", "2", "--jobs", "3", "--set", "classical.l2=0.5")
    result = compare("--methods", "br", *options, "--preset", "paper", "--config", file)
    assert result.code == 0, result.err
    (task,) = tasks
    assert (task.budget, task.n_jobs) == (2, 3)
    config = task.config
    assert (config.classical.l1, config.classical.l2, config.search.beam_width) == (0.5, 0.5, 12)
