"""Which runs a comparison makes, in which order, and which are done already."""

import pytest

from fake_runs import fake_run
from setrnn.comparison.compare import open_comparison
from setrnn.comparison.plan import find_methods
from setrnn.comparison.records import load_records
from setrnn.comparison.run import Task
from setrnn.config import Config
from setrnn.errors import ConfigError, DataError
from setrnn.methods import METHODS


@pytest.fixture
def comparison(small_prepared, tmp_path):
    return open_comparison(tmp_path / "out", small_prepared)


@pytest.fixture
def task(small_prepared, tmp_path):
    treatment = {"budget_minutes": None}
    return Task(small_prepared.folder, tmp_path / "out", "br", 0, Config(), treatment=treatment)


def test_all_is_every_method_but_later_ones_and_names_keep_the_order_of_the_table():
    later = [name for name, method in METHODS.items() if method.is_later]
    assert find_methods("all") == [name for name in METHODS if name not in later]
    assert find_methods("later") == later
    assert find_methods("later, all") == find_methods(["all", "later"]) == list(METHODS)
    assert find_methods("later,set-rnn, br") == ["br", "set-rnn", *later]
    without = find_methods("all,later", keeps_models=False)
    assert set(METHODS) - set(without) == {"mixture"}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("br,set-rn", "Did you mean 'set-rnn'"),
        ("br,latter", "Did you mean 'later'"),
        ("all,br", "twice"),
        (" ,", "names no method"),
    ],
)
def test_names_that_are_no_methods_are_refused(names, message):
    with pytest.raises(ConfigError, match=message):
        find_methods(names)


def test_a_damaged_file_of_the_comparison_is_made_again_once_removed(
    comparison, task, small_prepared
):
    fake_run(task).save(task.folder)
    file = task.folder / "comparison.json"
    file.write_bytes(b"")
    with pytest.raises(DataError, match=r"comparison.json is damaged. Remove it"):
        open_comparison(task.folder, small_prepared)
    file.unlink()
    assert open_comparison(task.folder, small_prepared) == comparison
    assert [each.name for each in load_records(task.folder, comparison)] == ["br-0"]
