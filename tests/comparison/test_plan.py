import shutil
from dataclasses import replace
from functools import partial

import pytest

from fake_runs import fake_run
from made_comparison import made_comparison
from setrnn.comparison.plan import (
    add_command,
    expect_seconds,
    failed_record,
    find_methods,
    list_seeds,
    longest_first,
    make_plan,
    open_comparable,
    open_comparison,
    refuse_unequal_treatment,
)
from setrnn.comparison.records import Comparison, Failure, load_records
from setrnn.comparison.run import Task
from setrnn.config import Config, TextSettings
from setrnn.data.cache import Source, open_prepared
from setrnn.data.formats import write_examples
from setrnn.data.preparing import prepare
from setrnn.errors import ConfigError, DataError
from setrnn.methods import METHODS
from setrnn.plain_settings import load_config
from setrnn.tagging.opening import describe_cut


@pytest.fixture
def comparison(small_prepared, tmp_path):
    return open_comparison(tmp_path / "out", small_prepared)


@pytest.fixture
def task(small_prepared, tmp_path):
    treatment = {"n_trials": 0, "budget_minutes": None}
    return Task(small_prepared.folder, tmp_path / "out", "br", 0, Config(), treatment=treatment)


def done(task):
    record = fake_run(task)
    record.save(task.folder)
    return record


def test_all_is_every_method_but_later_ones_and_names_keep_the_order_of_the_table():
    later = [name for name, method in METHODS.items() if method.is_later]
    assert find_methods("all") == [name for name in METHODS if name not in later]
    assert find_methods("later") == later
    assert find_methods("later, all") == find_methods(["all", "later"]) == list(METHODS)
    assert find_methods("set-rnn, br") == ["br", "set-rnn"]
    assert find_methods("later,set-rnn") == ["set-rnn", *later]


def test_without_models_all_has_no_mixture():
    assert set(find_methods("all,later")) - set(find_methods("all,later", keeps_models=False)) == {
        "mixture"
    }
    assert find_methods("br,mixture", keeps_models=False) == ["br", "mixture"]  # refused later


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("br,set-rn", "Did you mean 'set-rnn'"),
        ("br,latter", "Did you mean 'later'"),
        ("br,br", "twice"),
        ("all,br", "twice"),
        (" ,", "names no method"),
    ],
)
def test_names_that_are_no_methods_are_refused(names, message):
    with pytest.raises(ConfigError, match=message):
        find_methods(names)


def test_only_networks_are_run_with_every_seed():
    assert list(list_seeds("pcc", 3)) == [0]
    assert list(list_seeds("sigmoid", 3)) == [0, 1, 2]


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
        comparison = add_command(tmp_path / "out", comparison, command)
    assert Comparison.load(tmp_path / "out").commands == ("setrnn compare a", "setrnn compare b")


def prepared_from(examples, folder):
    streams = {name: partial(iter, each) for name, each in examples.items()}
    return prepare(streams, folder, "newsroom", TextSettings(), {"synthetic": True})


@pytest.mark.usefixtures("comparison")
def test_other_data_of_the_same_sizes_is_refused(small_examples, tmp_path):
    turned = {**small_examples, "test": small_examples["test"][::-1]}
    with pytest.raises(DataError, match="other data"):
        open_comparison(tmp_path / "out", prepared_from(turned, tmp_path / "turned"))


def test_data_without_a_test_part_is_refused(small_examples, tmp_path):
    parts = {name: small_examples[name] for name in ("train", "valid")}
    with pytest.raises(DataError, match=r"has no test part.*setrnn data split"):
        open_comparison(tmp_path / "out", prepared_from(parts, tmp_path / "parts"))
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_left_alone(small_prepared, tmp_path):
    (tmp_path / "thesis.tex").write_text("chapter 1")
    with pytest.raises(DataError, match="not a comparison"):
        open_comparison(tmp_path, small_prepared)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


def test_done_runs_are_passed_over_and_failed_ones_are_not(comparison, task):
    other = replace(task, method="pcc")
    record = done(task)
    failed_record(other, comparison, Failure("ValueError", "no")).save(task.folder)
    plan = make_plan(task.folder, comparison, [task, other])
    assert [each.name for each in plan.done] == [record.name]
    assert plan.tasks == [other]


def test_a_run_whose_record_is_damaged_is_done_again(comparison, task):
    other = replace(task, method="pcc")
    done(task)
    done(other)
    (task.folder / "runs" / "br-0.json").write_bytes(b"")
    plan = make_plan(task.folder, comparison, [task, other])
    assert [each.name for each in plan.done] == ["pcc-0"]
    assert plan.tasks == [task]


def test_a_damaged_file_of_the_comparison_is_made_again_once_removed(
    comparison, task, small_prepared
):
    done(task)
    file = task.folder / "comparison.json"
    file.write_bytes(b"")
    with pytest.raises(DataError, match=r"comparison.json is damaged. Remove it"):
        open_comparison(task.folder, small_prepared)
    file.unlink()
    again = open_comparison(task.folder, small_prepared)
    assert again == comparison
    assert [each.name for each in load_records(task.folder, again)] == ["br-0"]


def test_a_done_run_with_other_settings_is_refused_with_what_differs(comparison, task):
    done(task)
    changed = replace(task, config=load_config(overrides=["classical.l1=0.7"]))
    with pytest.raises(ConfigError, match=r"br-0.*classical\.l1 was 0\.1, now 0\.7.*--out"):
        make_plan(task.folder, comparison, [changed])


def test_runs_with_another_budget_do_not_stand_beside_each_other(comparison, task):
    done(task)
    records = load_records(task.folder, comparison)
    refuse_unequal_treatment(task.folder, records, task.treatment, task.config)
    with pytest.raises(ConfigError, match="budget_minutes was None, now 5"):
        refuse_unequal_treatment(
            task.folder, records, {"n_trials": 0, "budget_minutes": 5}, task.config
        )


def test_a_failed_record_says_what_was_tried_and_why_it_has_no_scores(comparison, task):
    failed_record(task, comparison, Failure("ValueError", "no")).save(task.folder)
    (record,) = load_records(task.folder, comparison)
    assert record.failure == Failure("ValueError", "no")
    assert record.config["classical"] == {**record.config["classical"], "l1": 0.1}
    assert record.rules == []


def test_the_longest_runs_come_first_by_what_was_measured(task):
    tasks = [replace(task, method=method) for method in ("br", "set-rnn", "sigmoid")]
    assert [each.method for each in longest_first(tasks)] == ["set-rnn", "sigmoid", "br"]
    records = records_that_took(br=[90.0], set_rnn=[10.0], sigmoid=[20.0])
    assert [each.method for each in longest_first(tasks, records)] == ["br", "sigmoid", "set-rnn"]


def records_that_took(**seconds):
    """Records of methods whose runs took so many seconds."""
    wanted = {method.replace("_", "-"): each for method, each in seconds.items()}
    _, records = made_comparison(tuple(wanted), n_seeds=2, n_documents=5)
    return [
        replace(each, costs=replace(each.costs, total_seconds=wanted[each.method][each.seed]))
        for each in records
        if each.seed < len(wanted[each.method])
    ]


def test_a_run_is_expected_to_take_as_long_as_those_of_its_method_did():
    records = records_that_took(br=[10.0], set_rnn=[90.0, 110.0])
    assert expect_seconds(["br", "set-rnn"], records) == {"br": 10.0, "set-rnn": 100.0}


def test_a_method_without_a_run_is_scaled_from_the_others():
    ratio = METHODS["set-rnn"].relative_cost / METHODS["br"].relative_cost
    expected = expect_seconds(["set-rnn"], records_that_took(br=[7.0]))
    assert expected["set-rnn"] == pytest.approx(7.0 * ratio)


def test_every_method_has_a_cost():
    assert all(expect_seconds([name])[name] > 0 for name in METHODS)


def test_checkpoints_of_other_settings_are_not_resumed(task):
    changed = replace(task, config=load_config(overrides=["training.learning_rate=0.01"]))
    assert replace(task).run_folder == task.run_folder != changed.run_folder


def test_another_system_with_other_settings_is_refused(comparison, task):
    done(task)
    other = load_config(overrides=["training.epochs=3"])
    with pytest.raises(
        ConfigError, match=r"br-0 with other settings: training.epochs was 0, now 3"
    ):
        refuse_unequal_treatment(
            task.folder, load_records(task.folder, comparison), task.treatment, other
        )
    refuse_unequal_treatment(
        task.folder,
        load_records(task.folder, comparison),
        task.treatment,
        replace(Config(), seed=5),
    )


def test_settings_that_were_searched_may_differ(comparison, task):
    treatment = {"n_trials": 4, "budget_minutes": None}
    tuned = load_config(overrides=["classical.l1=0.5"])
    done(replace(task, config=tuned, treatment=treatment))
    refuse_unequal_treatment(
        task.folder, load_records(task.folder, comparison), treatment, Config()
    )
    other = load_config(overrides=["training.epochs=3"])
    with pytest.raises(ConfigError, match=r"training.epochs was 0, now 3"):
        refuse_unequal_treatment(
            task.folder, load_records(task.folder, comparison), treatment, other
        )


SETTINGS = TextSettings()


@pytest.fixture
def data(small_examples, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for split in ("train", "test"):
        write_examples(small_examples[split], folder / f"{split}.jsonl")
    return folder


def opened(data, folder, **options):
    return open_comparable(Source(str(data), **options), SETTINGS, folder)


def test_a_missing_valid_part_is_cut_from_train(data, tmp_path):
    prepared = opened(data, tmp_path / "prepared")
    assert prepared.description["n_documents"] == {"train": 225, "valid": 75, "test": 60}
    assert prepared.description["valid_is_cut"] is True
    assert prepared.valid_is_cut
    train, valid = (prepared.split(name) for name in ("train", "valid"))
    assert not set(train.ids(0, 225)) & set(valid.ids(0, 75))
    note = describe_cut(prepared)
    assert all(each in note for each in ("data has no valid part", "25%", "225", "75"))


def test_the_cut_data_is_found_again_and_apart_from_the_data_as_it_is(data, tmp_path):
    folder = tmp_path / "prepared"
    whole = open_prepared(Source(str(data)), SETTINGS, folder)
    first = opened(data, folder)
    made = (first.folder / "prepared.json").stat().st_mtime_ns
    again = opened(data, folder)
    assert first.folder != whole.folder
    assert again.folder == first.folder
    assert (again.folder / "prepared.json").stat().st_mtime_ns == made
    assert not whole.valid_is_cut


def test_a_valid_part_of_its_own_is_kept(data, small_examples, tmp_path):
    write_examples(small_examples["valid"], data / "valid.jsonl")
    prepared = opened(data, tmp_path / "prepared")
    assert prepared.description["n_documents"] == {"train": 300, "valid": 60, "test": 60}
    assert not prepared.valid_is_cut
    as_trained_on = open_prepared(Source(str(data)), SETTINGS, tmp_path / "prepared")
    assert as_trained_on.folder == prepared.folder


def test_a_valid_file_that_is_named_is_taken(data, small_examples, tmp_path):
    write_examples(small_examples["valid"], tmp_path / "other.jsonl")
    prepared = opened(data, tmp_path / "prepared", valid=tmp_path / "other.jsonl")
    assert prepared.description["n_documents"]["valid"] == 60
    assert not prepared.valid_is_cut


def test_a_lone_file_has_no_test_part(data, tmp_path):
    file = data / "train.jsonl"
    with pytest.raises(DataError, match=r"no 'test' part .* data split .*train.jsonl FOLDER"):
        opened(file, tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()


def test_without_test_a_valid_part_is_kept_by_the_way_out(data, tmp_path):
    shutil.move(data / "test.jsonl", data / "valid.jsonl")
    with pytest.raises(DataError, match=r"train, valid.*FOLDER --valid 0"):
        opened(data, tmp_path / "prepared")


@pytest.mark.parametrize("missing", ["valid", "test"])
def test_a_prepared_folder_that_lacks_a_part_is_refused(data, small_examples, tmp_path, missing):
    if missing == "test":
        (data / "test.jsonl").unlink()
        write_examples(small_examples["valid"], data / "valid.jsonl")
    prepared = open_prepared(Source(str(data)), SETTINGS, tmp_path / "prepared")
    with pytest.raises(DataError, match=rf"without a '{missing}' part"):
        opened(prepared.folder, tmp_path / "prepared")


def test_a_complete_prepared_folder_is_taken_as_it_is(small_prepared):
    assert opened(small_prepared.folder, None).folder == small_prepared.folder
