"""The gains by cardinality are those of the stored comparisons and of the paper's table."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results"
SPECIFICATION = importlib.util.spec_from_file_location("cardinality", RESULTS / "cardinality.py")
cardinality = sys.modules["cardinality"] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(cardinality)


def test_the_tables_are_those_of_the_records():
    gains = [*cardinality.list_stored(), *cardinality.list_papers()]
    for name, write in (("csv", cardinality.write_csv), ("md", cardinality.write_tables)):
        assert (RESULTS / f"cardinality.{name}").read_text(encoding="utf-8") == write(gains)


def test_the_papers_gains_are_read_from_its_table():
    gains = {(each.data, each.measure, each.system): each for each in cardinality.list_papers()}
    assert len(gains) == 4 * 2 * 6
    found = gains["TheGuardian", "instance-F1", "set-rnn"]
    assert (found.gain, found.n_labels) == (0.012, 7.41)


def test_a_gain_is_the_difference_of_two_stored_scores():
    assert cardinality.Gain("a", "b", 2.0, "m", "s", 0.0149, 0.01, 0.019, 0.02).text == (
        "**+15 (+10 to +19)**"
    )
    summary = (RESULTS / "debtags" / "summary.json").read_text(encoding="utf-8")
    scores = json.loads(summary)["scores"]["set-rnn"]
    (found,) = [
        each
        for each in cardinality.list_stored()
        if (each.data, each.source, each.measure, each.system)
        == ("debtags", "default", "instance-F1", "set-rnn")
    ]
    difference = scores["set"]["instance_f1"]["mean"] - scores["sequence"]["instance_f1"]["mean"]
    assert found.gain == pytest.approx(difference)
