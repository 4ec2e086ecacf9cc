"""What a comparison records about its data, and how an older one is completed."""

from dataclasses import replace

import pytest

from fake_runs import fake_run
from setrnn.comparison.plan import complete_comparison, open_comparison
from setrnn.comparison.records import Comparison
from setrnn.comparison.run import Task
from setrnn.config import Config
from setrnn.data.cache import Source
from setrnn.errors import DataError
from setrnn.report.build import build_report
from setrnn.report.caveats import list_caveats


@pytest.fixture
def older(small_prepared, tmp_path):
    """A comparison by a version that did not record unseen sets and lengths."""
    folder = tmp_path / "out"
    comparison = replace(open_comparison(folder, small_prepared), unseen_sets=None, mean_words=None)
    comparison.save(folder)
    return folder, comparison


def test_unseen_sets_are_those_of_no_training_document(small_prepared, small_examples, tmp_path):
    comparison = open_comparison(tmp_path / "out", small_prepared)
    seen = {frozenset(each.labels) for each in small_examples["train"]}
    unseen = [
        row for row, each in enumerate(small_examples["test"]) if frozenset(each.labels) not in seen
    ]
    assert list(comparison.unseen_sets) == unseen
    assert Comparison.load(tmp_path / "out") == comparison
    lengths = small_prepared.split("test").tokens.lengths
    assert comparison.mean_words["test"] == pytest.approx(lengths.mean(), abs=0.01)


def test_an_older_comparison_is_completed_when_it_is_continued(older, small_prepared):
    folder, comparison = older
    assert Comparison.load(folder).unseen_sets is None
    again = open_comparison(folder, small_prepared)
    assert again.unseen_sets is not None
    assert Comparison.load(folder) == again
    assert again.truth == comparison.truth


def test_a_report_completes_an_older_comparison_from_its_data(older, small_prepared):
    folder, comparison = older
    task = Task(small_prepared.folder, folder, "br", 0, Config())
    fake_run(task).save(folder)
    assert any("older version" in each for each in list_caveats(comparison, []))
    said = build_report(folder, data=small_prepared.folder).caveats
    assert not any("older version" in each for each in said)
    assert Comparison.load(folder).mean_words


def test_other_data_does_not_complete_a_comparison(older, small_prepared):
    folder, comparison = older
    other = replace(comparison, ids=tuple(reversed(comparison.ids)))
    with pytest.raises(DataError, match="not the data"):
        complete_comparison(folder, other, [], Source(str(small_prepared.folder)))
