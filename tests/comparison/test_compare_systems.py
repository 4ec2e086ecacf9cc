"""`setrnn.compare`: many runs, here faked, with what is kept, refused and continued."""

import json
import os

import pytest

import setrnn
from fake_runs import fake_run, install_fake_runs, run_here
from setrnn.comparison.compare import QUICK_SETTINGS
from setrnn.comparison.plan import find_methods
from setrnn.comparison.records import Comparison, Failure, load_records
from setrnn.config import Config
from setrnn.data.disk import locked
from setrnn.errors import BusyError, ConfigError, StoppedError
from setrnn.methods import METHODS
from setrnn.progress import Progress


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def ran(monkeypatch):
    """Make runs of no cost, in this process; the names of those that were made."""
    return install_fake_runs(monkeypatch)


@pytest.fixture
def compare(small_prepared, out):
    def call(methods="all", settings=(), **options):
        settings = ["vectors.source=none", *settings]
        return setrnn.compare(small_prepared, methods, out=out, settings=settings, **options)

    return call


def records_of(folder):
    return {each.name: each for each in load_records(folder, Comparison.load(folder))}


def test_every_system_is_run_and_leaves_a_record(compare, ran, out):
    result = compare(seeds=2)
    assert len(ran) == len(set(ran)) == 3 + 9 * 2 + 2
    assert ran[-2:] == ["mixture-0", "mixture-1"]  # of the others
    assert set(records_of(out)) == {each.name for each in result.records} == set(ran)
    assert len(result.mean_scores()) == 13
    assert not result.failures


def test_the_same_call_continues_also_with_more_methods_and_seeds(compare, ran, out):
    compare("br,sigmoid", seeds=1)
    result = compare(["br", "sigmoid", "sgm"], seeds=2)
    assert sorted(ran) == ["br-0", "sgm-0", "sgm-1", "sigmoid-0", "sigmoid-1"]
    assert len(ran) == len(result.records)


def test_a_mixture_of_more_members_is_made_again(compare, ran):
    compare("br,pcc,mixture")
    assert ran == ["br-0", "pcc-0", "mixture-0"]
    compare("br,pcc,mixture")
    compare("br,pcc,sigmoid,mixture", seeds=1)
    assert ran[3:] == ["sigmoid-0", "mixture-0"]


def test_one_comparison_at_a_time_runs_in_a_folder(compare, ran, out):
    with (
        locked(out / "comparison.json"),
        pytest.raises(BusyError, match=rf"out.*process {os.getpid()}.*--out"),
    ):
        compare("br")
    assert not ran
    compare("br")
    assert ran == ["br-0"]


def test_a_failed_run_is_recorded_does_not_stop_the_others_and_is_tried_again(
    compare, monkeypatch, notes
):
    def fail_once(task, on_progress):
        if task.method == "pcc" and ran.count("pcc-0") == 1:
            raise ZeroDivisionError("nothing there")
        return fake_run(task, on_progress)

    ran = install_fake_runs(monkeypatch, fail_once)
    result = compare("br,pcc")
    failure = Failure("ZeroDivisionError", "ZeroDivisionError: nothing there")
    assert result.failures == {"pcc-0": failure}
    assert list(result.mean_scores()) == ["br"]
    assert any("1 failed" in each for each in notes.texts)
    assert not compare("br,pcc").failures
    assert ran.count("br-0") == 1


def test_a_damaged_record_is_named_and_its_run_is_done_again(compare, ran, out, notes):
    compare("br,pcc")
    (out / "runs" / "br-0.json").write_bytes(b"")
    result = compare("br,pcc")
    assert ran == ["br-0", "pcc-0", "br-0"]
    assert {each.name for each in result.records} == {"br-0", "pcc-0"}
    (warning,) = notes.warnings
    assert "br-0.json is damaged" in warning


def test_checkpoints_left_by_a_killed_comparison_are_removed_when_their_run_is_done(
    compare, ran, out
):
    compare("br,pcc")
    left = out / "runs" / "br-0-0123456789ab.run"
    left.mkdir()
    compare("br,pcc")
    assert not left.exists()


def test_a_stopped_comparison_keeps_what_is_done(compare, monkeypatch, out):
    def interrupt(task, on_progress):
        if task.method == "br":
            raise KeyboardInterrupt
        return fake_run(task, on_progress)

    install_fake_runs(monkeypatch, interrupt)
    with pytest.raises(StoppedError, match="same command continues"):
        compare("br,pcc,sigmoid", seeds=1)
    assert "sigmoid-0" in records_of(out)  # the longest run comes first
    ran = install_fake_runs(monkeypatch)
    compare("br,pcc,sigmoid", seeds=1)
    assert "sigmoid-0" not in ran


REFUSED = {
    "no method": ({"methods": " ,"}, "names no method"),
    "a method nearly": ({"methods": "br,set-rn"}, "Did you mean 'set-rnn'"),
    "a group nearly": ({"methods": "br,latter"}, "Did you mean 'later'"),
    "a mixture alone": ({"methods": "mixture"}, "at least two others"),
    "a mixture of one": ({"methods": "br,mixture"}, "at least two others"),
    "no budget": ({"budget": 0}, "budget must be above 0"),
    "no seeds": ({"seeds": 0}, "seeds must be at least"),
    "no jobs": ({"jobs": -1}, "jobs must be at least"),
    "quick and a preset": ({"quick": True, "preset": "paper"}, "quick has settings"),
    "quick and a config": ({"quick": True, "config": Config()}, "quick has settings"),
    "config and settings": ({"config": Config()}, "not both"),
    "added as a method": ({"added": {"br": "x.jsonl"}}, "is a method"),
    "added twice": ({"added": {"a": "x.jsonl", "A": "y.jsonl"}}, "twice"),
    "GPUs without Ray": ({"gpus_per_run": 0.5}, "--ray"),
    "parts of two GPUs": ({"ray": "auto", "gpus_per_run": 1.5}, "whole number"),
    "no GPU on Ray": ({"ray": "auto", "device": "cuda"}, "--gpus-per-run"),
    "no cluster": ({"ray": "127.0.0.1:1"}, "No Ray cluster"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused_before_anything_is_run(compare, ran, out, name):
    options, message = REFUSED[name]
    with pytest.raises(ConfigError, match=message):
        compare(**options)
    assert not ran
    assert not out.exists()


def test_all_is_every_method_but_later_ones_and_names_keep_the_order_of_the_table():
    later = [name for name, method in METHODS.items() if method.is_later]
    assert find_methods("all") == [name for name in METHODS if name not in later]
    assert find_methods("later") == later
    assert find_methods("later, all") == find_methods(["all", "later"]) == list(METHODS)
    assert find_methods("later,set-rnn, br,set-rnn") == ["br", "set-rnn", *later]


def test_other_settings_and_budgets_are_refused(compare, ran, out):
    compare("br", command="setrnn compare")
    with pytest.raises(ConfigError, match=r"classical\.l2 was 0\.03, now 0\.5"):
        compare("br", ["classical.l2=0.5"])
    with pytest.raises(ConfigError, match="budget_minutes was None, now 5"):
        compare("br", budget=5)
    assert ran == ["br-0"]
    assert Comparison.load(out).commands == ("setrnn compare",)  # refused calls made nothing


def test_quick_has_one_seed_and_small_settings(compare, ran, out):
    compare("sigmoid", ["training.epochs=1"], quick=True)
    (record,) = records_of(out).values()
    assert record.config["model"]["encoder_units"] == QUICK_SETTINGS["model.encoder_units"]
    assert record.config["training"]["epochs"] == 1  # the given setting counts most


@pytest.fixture
def tasks(monkeypatch):
    """The tasks of the runs that are made, without their cost."""
    found = []

    def run(task, on_progress):
        found.append(task)
        return fake_run(task, on_progress)

    install_fake_runs(monkeypatch, run)
    return found


def test_the_budget_and_the_jobs_reach_the_run(compare, tasks, monkeypatch):
    def run_jobs(jobs, n_jobs, on_progress, n_threads):
        assert (n_jobs, n_threads) == (3, 2)  # the jobs share the cores
        return run_here(jobs, n_jobs, on_progress)

    monkeypatch.setattr("setrnn.comparison.compare.n_cores", lambda: 8)
    monkeypatch.setattr("setrnn.comparison.compare.run_jobs", run_jobs)
    compare("br", budget=2, jobs=3)
    (task,) = tasks
    assert (task.budget, task.n_jobs) == (2, 3)


@pytest.fixture
def on_ray(monkeypatch):
    """A Ray cluster that has room for five runs, in this process; how jobs were given to it."""
    given = []

    def run_jobs_on_ray(jobs, n_jobs, on_progress, gpus_per_job):
        given.append((n_jobs, gpus_per_job))
        return run_here(jobs, n_jobs, on_progress)

    monkeypatch.setattr("setrnn.comparison.compare.connect", lambda address: None)
    monkeypatch.setattr("setrnn.comparison.compare.count_room", lambda gpus: 5)
    monkeypatch.setattr("setrnn.comparison.compare.run_jobs_on_ray", run_jobs_on_ray)
    return given


def test_with_ray_the_runs_are_given_to_the_cluster(compare, tasks, on_ray):
    compare("br", ray="auto")
    compare("pcc", ray="auto", gpus_per_run=0.25, jobs=2, preset="small")
    assert on_ray[0] == (None, 0.0)
    assert on_ray[-1] == (2, 0.25)
    first, second = tasks
    assert (first.device, first.n_jobs) == ("cpu", 5)  # a GPU only if it is asked for
    assert (second.device, second.n_jobs) == ("auto", 2)
    assert first.folder.is_absolute()


def test_with_ray_the_data_is_prepared_where_all_nodes_see_it(on_ray, ran, out):
    setrnn.compare("newsroom", "br", out=out, ray="auto", settings=["vectors.source=none"])
    assert (out / "prepared").is_dir()


def test_added_predictions_become_a_row(compare, ran, out, tmp_path):
    compare("pcc")
    comparison = Comparison.load(out)
    rows = [
        {"id": each, "labels": [comparison.labels[label] for label in truth]}
        for each, truth in zip(comparison.ids, comparison.truth, strict=True)
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[::-1]))
    result = compare("pcc", added={"mine": file})
    assert result.mean_scores()["mine"]["instance_f1"] == 1
    assert records_of(out)["mine-0"].is_added


def test_the_progress_of_each_run_and_of_all_is_reported(compare, ran, notes):
    events = []
    compare("br,sigmoid", seeds=2, on_progress=events.append)
    progress = [each for each in events if isinstance(each, Progress)]
    parts = {each.activity for each in progress if each.part_of == "runs"}
    assert parts == set(ran)
    shares = [each.share for each in progress if each.activity == "runs"]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert any("br-0: instance-F1" in each and "3 of 3 runs" in each for each in notes.texts)
