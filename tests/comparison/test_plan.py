from dataclasses import replace
from functools import partial

import pytest

from fake_runs import fake_run
from setrnn.comparison.plan import (
    failed_record,
    find_methods,
    longest_first,
    make_plan,
    open_comparison,
    refuse_unequal_treatment,
    seeds_of,
    with_command,
)
from setrnn.comparison.records import Comparison, Failure, load_records
from setrnn.comparison.run import Task
from setrnn.config import Config, TextSettings, load_config
from setrnn.data.prepared import prepare
from setrnn.errors import ConfigError, DataError
from setrnn.methods import METHODS


@pytest.fixture
def comparison(small_prepared, tmp_path):
    return open_comparison(tmp_path / "out", small_prepared)


@pytest.fixture
def task(small_prepared, tmp_path):
    treatment = {"n_trials": 0, "budget_minutes": None}
    return Task(small_prepared.folder, tmp_path / "out", "br", 0, Config(), treatment=treatment)


def done(task):
    record = fake_run(task, lambda activity, share: None)
    record.save(task.folder)
    return record


def test_all_is_every_method_and_names_keep_the_order_of_the_table():
    assert find_methods("all") == list(METHODS)
    assert find_methods("set-rnn, br") == ["br", "set-rnn"]


@pytest.mark.parametrize(
    ("names", "message"),
    [("br,set-rn", "Did you mean 'set-rnn'"), ("br,br", "twice"), (" ,", "names no method")],
)
def test_names_that_are_no_methods_are_refused(names, message):
    with pytest.raises(ConfigError, match=message):
        find_methods(names)


def test_only_networks_are_run_with_every_seed():
    assert list(seeds_of("pcc", 3)) == [0]
    assert list(seeds_of("sigmoid", 3)) == [0, 1, 2]


def test_a_comparison_holds_the_test_part_as_prepared(comparison, small_prepared, small_examples):
    test = small_examples["test"]
    assert list(comparison.ids) == [example.id for example in test]
    named = [{comparison.labels[label] for label in row} for row in comparison.truth]
    assert named == [set(example.labels) for example in test]
    assert len(comparison.label_counts) == len(comparison.labels)
    n_train = sum(len(example.labels) for example in small_examples["train"])
    assert sum(comparison.label_counts) == n_train
    assert comparison.synthetic


def test_a_comparison_opened_again_is_the_same(comparison, small_prepared, tmp_path):
    assert open_comparison(tmp_path / "out", small_prepared) == comparison


def test_each_command_is_kept_once(comparison, tmp_path):
    for command in ("setrnn compare a", "setrnn compare b", "setrnn compare a"):
        comparison = with_command(tmp_path / "out", comparison, command)
    assert Comparison.load(tmp_path / "out").commands == ("setrnn compare a", "setrnn compare b")


def prepared_from(examples, folder):
    streams = {name: partial(iter, each) for name, each in examples.items()}
    return prepare(streams, folder, "newsroom", TextSettings(), {"synthetic": True})


@pytest.mark.usefixtures("comparison")
def test_other_data_of_the_same_sizes_is_refused(small_examples, tmp_path):
    turned = {**small_examples, "test": small_examples["test"][::-1]}
    with pytest.raises(DataError, match="on other data"):
        open_comparison(tmp_path / "out", prepared_from(turned, tmp_path / "turned"))


def test_data_without_a_test_part_is_refused(small_examples, tmp_path):
    parts = {name: small_examples[name] for name in ("train", "valid")}
    with pytest.raises(DataError, match=r"has no test part.*setrnn data split"):
        open_comparison(tmp_path / "out", prepared_from(parts, tmp_path / "parts"))
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_left_alone(small_prepared, tmp_path):
    (tmp_path / "thesis.tex").write_text("chapter 1")
    with pytest.raises(DataError, match="is not a comparison"):
        open_comparison(tmp_path, small_prepared)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


def test_done_runs_are_passed_over_and_failed_ones_are_not(comparison, task):
    other = replace(task, method="pcc")
    record = done(task)
    failed_record(other, comparison, Failure("ValueError", "no")).save(task.folder)
    plan = make_plan(task.folder, comparison, [task, other])
    assert [each.name for each in plan.done] == [record.name]
    assert plan.tasks == [other]


def test_a_done_run_with_other_settings_is_refused_with_what_differs(comparison, task):
    done(task)
    changed = replace(task, config=load_config(overrides=["classical.l1=0.7"]))
    with pytest.raises(ConfigError, match=r"br-0.*classical\.l1 was 0\.1, now 0\.7.*--out"):
        make_plan(task.folder, comparison, [changed])


def test_runs_with_another_budget_do_not_stand_beside_each_other(comparison, task):
    done(task)
    refuse_unequal_treatment(task.folder, comparison, task.treatment, task.config)
    with pytest.raises(ConfigError, match="budget_minutes was None, now 5"):
        refuse_unequal_treatment(
            task.folder, comparison, {"n_trials": 0, "budget_minutes": 5}, task.config
        )


def test_a_failed_record_says_what_was_tried_and_why_it_has_no_scores(comparison, task):
    failed_record(task, comparison, Failure("ValueError", "no")).save(task.folder)
    (record,) = load_records(task.folder, comparison)
    assert record.failure == Failure("ValueError", "no")
    assert record.config["classical"] == {**record.config["classical"], "l1": 0.1}
    assert record.rules == []


def test_the_longest_runs_come_first_by_what_was_measured(task):
    tasks = [replace(task, method=method) for method in ("br", "set-rnn", "sigmoid")]
    assert [each.method for each in longest_first(tasks, {})] == ["set-rnn", "sigmoid", "br"]
    measured = {"br": [90.0], "set-rnn": [10.0], "sigmoid": [20.0]}
    assert [each.method for each in longest_first(tasks, measured)] == ["br", "sigmoid", "set-rnn"]


def test_checkpoints_of_other_settings_are_not_gone_on_with(task):
    changed = replace(task, config=load_config(overrides=["training.learning_rate=0.01"]))
    assert replace(task).run_folder == task.run_folder != changed.run_folder


def test_another_system_with_other_settings_is_refused(comparison, task):
    done(task)
    other = load_config(overrides=["training.epochs=3"])
    with pytest.raises(
        ConfigError, match=r"br-0 with other settings: training.epochs was 20, now 3"
    ):
        refuse_unequal_treatment(task.folder, comparison, task.treatment, other)
    refuse_unequal_treatment(task.folder, comparison, task.treatment, replace(Config(), seed=5))


def test_settings_that_were_searched_may_differ(comparison, task):
    treatment = {"n_trials": 4, "budget_minutes": None}
    tuned = load_config(overrides=["classical.l1=0.5"])
    done(replace(task, config=tuned, treatment=treatment))
    refuse_unequal_treatment(task.folder, comparison, treatment, Config())
    other = load_config(overrides=["training.epochs=3"])
    with pytest.raises(ConfigError, match=r"training.epochs was 20, now 3"):
        refuse_unequal_treatment(task.folder, comparison, treatment, other)
