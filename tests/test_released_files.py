"""What earlier versions wrote is still read: models, records and stored results."""

import copy
import json
import re
from pathlib import Path

import pytest

import setrnn
from setrnn.comparison import records
from setrnn.comparison.records import Comparison, load_records
from setrnn.data import model_folder
from setrnn.report.drift import find_drift, read_summary

ROOT = Path(__file__).parents[1]
RELEASED = sorted((ROOT / "tests" / "released").iterdir())
STORED = sorted(file.parent for file in (ROOT / "docs" / "results").rglob("summary.json"))
POLICY = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", RELEASED, ids=lambda each: each.name)
def test_models_of_a_release_predict_the_same_sets(folder):
    stored = json.loads((folder / "predictions.json").read_text(encoding="utf-8"))
    for name, expected in stored["predictions"].items():
        tagger = setrnn.load(folder / name, "cpu")
        found = tagger.tag(stored["texts"], rule="set")
        assert [list(each.labels) for each in found] == [each["labels"] for each in expected]
        probs = [each["probability"] for each in expected]
        assert [each.probability for each in found] == pytest.approx(probs, abs=1e-4)


@pytest.mark.parametrize("folder", RELEASED, ids=lambda each: each.name)
def test_records_of_a_release_are_read(folder):
    comparison = Comparison.load(folder / "comparison")
    (record,) = load_records(folder / "comparison", comparison)
    assert (comparison.data, record.setrnn) == ("data", folder.name)
    assert 0 < record.scores["test"]["f1"]["instance_f1"] <= 1


@pytest.mark.parametrize("folder", STORED, ids=lambda each: each.relative_to(ROOT).as_posix())
def test_stored_results_of_an_earlier_version_can_be_compared_with(folder):
    """Most results of docs/results were made before the release, some systems after it."""
    stored = read_summary(folder)
    now = copy.deepcopy(dict(stored))
    environment = now["setups"]["environment"]
    environment["common"]["setrnn"] = setrnn.__version__
    environment["differing"].pop("setrnn", None)
    drift = find_drift(now, stored)
    assert {each.verdict for each in drift.changes} == {"same"}
    is_older = "0.1.0" in str(stored["setups"]["environment"])
    expected = [f"setrnn: 0.1.0 → {setrnn.__version__}"] if is_older else []
    assert [str(each).partition(" (")[0] for each in drift.settings] == expected


def test_the_policy_names_the_formats_that_are_written():
    assert f"format {model_folder.FORMAT} of model folders" in POLICY
    assert f"format {records.FORMAT} of records" in POLICY


def test_the_version_is_the_same_everywhere():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released, date = re.search(r"^## (\S+) \((\S+)\)$", changelog, re.M).groups()
    assert released == setrnn.__version__
    assert f"version: {released}\ndate-released: {date}\n" in citation
