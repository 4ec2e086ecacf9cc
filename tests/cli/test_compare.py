import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fake_runs import fake_run, run_here
from setrnn.cli import comparing
from setrnn.cli.compare_display import comparison_display, duration
from setrnn.comparison.records import Comparison, Failure, load_records
from setrnn.errors import ConfigError
from setrnn.tagging.tagger import load

FAST = ("--set", "vectors.source=none")


@pytest.fixture
def page(monkeypatch):
    """A report that is only a name: what the page holds is tested elsewhere."""

    def build_report(folder, out=None):
        return SimpleNamespace(page=folder / "report" / "index.html")

    fake = SimpleNamespace(build_report=build_report)
    monkeypatch.setitem(sys.modules, "setrnn.report.build", fake)


@pytest.fixture
def ran(monkeypatch, page):
    """Make runs of no cost, in this process; tell which were made."""
    names = []

    def run(task, on_progress):
        names.append(task.name)
        return fake_run(task, on_progress)

    monkeypatch.setattr("setrnn.comparison.jobs.run", run)
    monkeypatch.setattr("setrnn.comparison.pool.run_jobs", run_here)
    return names


@pytest.fixture
def compare(setrnn, corpus, tmp_path):
    def run(*options, data=corpus):
        return setrnn("compare", data, "--out", tmp_path / "out", *FAST, *options)

    return run


def records_of(folder):
    return {each.name: each for each in load_records(folder, Comparison.load(folder))}


def test_every_system_is_run_and_the_page_is_named(compare, ran, tmp_path):
    result = compare("--seeds", 2)
    assert result.code == 0, result.err
    assert len(ran) == 3 + 9 * 2
    assert set(records_of(tmp_path / "out")) == set(ran)
    assert "21 of 21 runs" in result.err
    assert "report/index.html" in result.err.splitlines()[-1]
    assert "set-rnn-exact" in result.out
    (command,) = Comparison.load(tmp_path / "out").commands
    assert command.startswith("setrnn compare")


def test_the_same_command_goes_on_where_it_was(compare, ran, tmp_path):
    assert compare("--methods", "br,sigmoid", "--seeds", 1).code == 0
    assert compare("--methods", "br,sigmoid,sgm", "--seeds", 2).code == 0
    assert sorted(ran) == ["br-0", "sgm-0", "sgm-1", "sigmoid-0", "sigmoid-1"]
    assert len(ran) == len(records_of(tmp_path / "out"))


def test_a_run_that_fails_is_recorded_the_others_go_on_and_it_is_tried_again(
    compare, ran, monkeypatch, tmp_path
):
    def fail_once(task, on_progress):
        ran.append(task.name)
        if ran.count("pcc-0") == 1 and task.method == "pcc":
            raise ZeroDivisionError("nothing there")
        return fake_run(task, on_progress)

    monkeypatch.setattr("setrnn.comparison.jobs.run", fail_once)
    result = compare("--methods", "br,pcc")
    assert result.code == 0
    assert "pcc-0 failed: ZeroDivisionError: nothing there" in result.err
    assert "1 failed" in result.err
    failure = records_of(tmp_path / "out")["pcc-0"].failure
    assert failure == Failure("ZeroDivisionError", "ZeroDivisionError: nothing there")
    assert compare("--methods", "br,pcc").code == 0
    assert ran.count("br-0") == 1
    assert records_of(tmp_path / "out")["pcc-0"].failure is None


def test_when_every_run_fails_so_does_the_command(compare, ran, monkeypatch):
    def fail(task, on_progress):
        raise ZeroDivisionError("nothing there")

    monkeypatch.setattr("setrnn.comparison.jobs.run", fail)
    result = compare("--methods", "br,pcc")
    assert result.code == 1
    assert len(result.error_lines) == 1
    assert "Every run failed (2)" in result.error_lines[0]


def test_ctrl_c_says_how_to_go_on_and_keeps_what_is_done(compare, ran, monkeypatch, tmp_path):
    def interrupt(task, on_progress):
        if task.method == "br":
            raise KeyboardInterrupt
        return fake_run(task, on_progress)

    monkeypatch.setattr("setrnn.comparison.jobs.run", interrupt)
    result = compare("--methods", "br,pcc,sigmoid", "--seeds", 1)
    assert result.code == 130
    assert "the same command goes on" in result.err
    assert "Traceback" not in result.err
    assert "sigmoid-0" in records_of(tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--methods", "set-rn"), "Did you mean 'set-rnn'"),
        (("--budget", "0"), "--budget must be above 0"),
        (("--quick", "--preset", "paper"), "--quick has settings of its own"),
        (("--add", "mine"), "must be NAME=FILE"),
        (("--add", "a=x.jsonl", "--add", "a=y.jsonl"), "gives 'a' twice"),
    ],
)
def test_bad_usage_is_refused_in_one_line_before_anything_is_run(compare, ran, options, message):
    result = compare(*options)
    assert result.code == 1
    assert len(result.error_lines) == 1
    assert message in result.error_lines[0]
    assert not ran


def test_other_settings_and_other_data_are_refused_in_one_line(compare, ran, tmp_path):
    assert compare("--methods", "br").code == 0
    for options, message in (
        (("--set", "classical.l2=0.5"), "classical.l2 was 0.03, now 0.5"),
        (("--budget", "5"), "budget_minutes was None, now 5"),
    ):
        result = compare("--methods", "br", *options)
        assert result.code == 1
        assert message in result.error_lines[0]
    result = compare("--methods", "br", data="newsroom")
    assert "on other data" in result.error_lines[0]
    assert ran == ["br-0"]
    assert len(Comparison.load(tmp_path / "out").commands) == 1  # refused ones made nothing


def test_quick_takes_one_seed_and_small_settings(compare, ran, tmp_path):
    assert compare("--quick", "--methods", "sigmoid", "--set", "training.epochs=1").code == 0
    (record,) = records_of(tmp_path / "out").values()
    assert record.config["model"]["encoder_units"] == 96
    assert record.config["training"]["epochs"] == 1  # what is asked for counts most


def test_a_missing_valid_part_is_cut_and_said_so(compare, ran, corpus, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("train.jsonl", "test.jsonl"):
        (parts / name).write_bytes((corpus / name).read_bytes())
    result = compare("--methods", "br", data=parts)
    assert result.code == 0, result.err
    assert "has no valid part" in result.err
    comparison = Comparison.load(tmp_path / "out")
    assert comparison.valid_is_cut
    assert sum(comparison.n_documents[name] for name in ("train", "valid")) == 400


def test_a_missing_test_part_is_refused_in_one_line(compare, ran, corpus):
    result = compare("--methods", "br", data=corpus / "train.jsonl")
    assert result.code == 1
    assert "'test' part" in result.error_lines[0]
    assert not ran


def test_a_budget_and_the_jobs_reach_the_run(compare, ran, monkeypatch):
    tasks = []

    def run(task, on_progress):
        tasks.append(task)
        return fake_run(task, on_progress)

    monkeypatch.setattr("setrnn.comparison.jobs.run", run)
    options = ("--methods", "br", "--budget", "2", "--jobs", "3", "--no-models")
    assert compare(*options).code == 0
    (task,) = tasks
    assert (task.budget_seconds, task.n_jobs, task.keep_model) == (120.0, 3, False)


@pytest.fixture
def searched(monkeypatch):
    """A search for settings of no cost; tell what was searched."""
    methods = []

    def tuned_config(prepared, method, config, n_trials, *others):
        methods.append(method)
        if method == "pcc":
            raise ConfigError("no trial went well")
        best = replace(config, training=replace(config.training, learning_rate=0.5))
        return SimpleNamespace(config=best, trials=[{"score": 0.5}] * n_trials)

    monkeypatch.setattr("setrnn.comparison.tuning.tuned_config", tuned_config)
    return methods


def test_settings_are_searched_once_for_all_seeds_of_a_method(compare, ran, searched, tmp_path):
    assert compare("--methods", "sgm,br", "--seeds", 2, "--tune", 4).code == 0
    assert sorted(searched) == ["br", "sgm"]
    records = records_of(tmp_path / "out")
    assert {each.config["training"]["learning_rate"] for each in records.values()} == {0.5}
    assert [records[f"sgm-{seed}"].config["seed"] for seed in (0, 1)] == [0, 1]
    assert records["br-0"].treatment["n_trials"] == 4
    again = compare("--methods", "sgm", "--seeds", 2)
    assert again.code == 1
    assert "n_trials was 4, now 0" in again.error_lines[0]


def test_a_search_that_fails_is_the_failure_of_its_runs(compare, ran, searched, tmp_path):
    result = compare("--methods", "br,pcc", "--tune", 2)
    assert result.code == 0
    assert ran == ["br-0"]
    assert records_of(tmp_path / "out")["pcc-0"].failure.message == "no trial went well"


def test_added_predictions_become_a_row(compare, ran, tmp_path):
    assert compare("--methods", "pcc").code == 0
    comparison = Comparison.load(tmp_path / "out")
    rows = [
        {"id": each, "labels": [comparison.labels[label] for label in truth]}
        for each, truth in zip(comparison.ids, comparison.truth, strict=True)
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[::-1]))
    result = compare("--methods", "pcc", "--add", f"mine={file}")
    assert result.code == 0, result.err
    record = records_of(tmp_path / "out")["mine-0"]
    assert record.is_added
    assert record.scores["test"]["given"]["instance_f1"] == 1
    assert "mine" in result.out


def test_added_predictions_of_other_documents_are_refused_in_one_line(compare, ran, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": "another", "labels": []}\n')
    result = compare("--methods", "pcc", "--add", f"mine={file}")
    assert result.code == 1
    assert len(result.error_lines) == 1
    assert "another" in result.error_lines[0]
    assert not ran


def test_the_table_is_the_mean_over_seeds_by_the_own_rule(compare, ran, tmp_path):
    assert compare("--methods", "seq2seq-rnn", "--seeds", 2).code == 0
    records = records_of(tmp_path / "out").values()
    scores = [each.scores["test"]["sequence"]["micro_f1"] for each in records]
    found = comparing.mean_scores(list(records))["seq2seq-rnn"]["micro_f1"]
    assert found == pytest.approx(sum(scores) / 2)


def test_the_display_tells_how_much_is_left(capsys):
    methods = {"br-0": "br", "br-1": "br", "br-2": "br"}
    with comparison_display("runs", methods, 1, {"br": [300.0]}, n_done=1) as display:
        display.started("br-0")
        display.ended("br-0", 300.0, "fine")
        display.started("br-1")
        display.ended("br-1", 2.0, "", Failure("ValueError", "no"))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "br-0: fine; 5 min (2 of 4 runs, about 10 min left)"
    assert second == "br-1: failed: no; 2 s (3 of 4 runs, 1 failed, about 5 min left)"


def test_durations_are_written_for_people():
    assert [duration(each) for each in (0.4, 100, 600, 9000)] == ["0 s", "100 s", "10 min", "2.5 h"]


def test_a_real_run_leaves_a_record_a_model_and_a_page(compare, tmp_path):
    options = ("--methods", "br", "--set", "classical.max_pairs=0", "--device", "cpu")
    result = compare(*options)
    assert result.code == 0, result.err
    (record,) = records_of(tmp_path / "out").values()
    assert record.costs.peak_memory_bytes > 0
    assert not list((tmp_path / "out" / "runs").glob("*.log"))
    assert load(tmp_path / "out" / "models" / "br-0").tag(["a cup final"])
    assert "br" in (tmp_path / "out" / "report" / "index.html").read_text(encoding="utf-8")
