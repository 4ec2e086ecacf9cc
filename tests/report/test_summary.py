"""Scores that drift, and scores that do not."""

import copy
import json

import pytest

from made_comparison import made_comparison
from setrnn.errors import DataError
from setrnn.report.study import Study
from setrnn.report.summary import find_drift, read_summary, summarise

METHODS = ("br", "seq2seq-rnn", "set-rnn")


@pytest.fixture(scope="module")
def stored():
    comparison, records = made_comparison(METHODS, 3, n_documents=150)
    scores = summarise(Study.of(comparison, records, n_draws=99))
    return {**scores, "setups": {"config": {"common": {"training.epochs": "20"}}}}


@pytest.fixture
def now(stored):
    return copy.deepcopy(stored)


def test_a_comparison_has_not_drifted_from_itself(stored, now):
    drift = find_drift(now, stored)
    # five measures by the own rule, and those of them that another rule is made for
    assert drift.n_scores == 9 + 10 + 9
    assert drift.drifted == drift.settings == drift.missing == []


@pytest.mark.parametrize(
    ("system", "std", "n_seeds", "allowed"),
    [
        ("br", None, 1, 0.005),
        ("set-rnn", 0.01, 3, 3 * 0.01 * (2 / 3) ** 0.5),
        ("set-rnn", None, 1, 3 * 0.01 * 2**0.5),
        ("set-rnn", 0.0001, 3, 0.005),
    ],
)
def test_a_difference_above_the_tolerance_is_a_drift(stored, now, system, std, n_seeds, allowed):
    stored = copy.deepcopy(stored)
    for side in (stored, now):
        side["scores"][system]["set"]["instance_f1"] |= {"std": std, "n_seeds": n_seeds}
    score = now["scores"][system]["set"]["instance_f1"]
    score["mean"] += 0.99 * allowed
    assert not find_drift(now, stored).drifted
    score["mean"] += 0.02 * allowed
    (drifted,) = find_drift(now, stored).drifted
    assert drifted.startswith(f"{system}, instance-F1 by set: ")


def test_what_differs_besides_is_named(stored, now):
    del now["scores"]["br"]
    now["data_hash"] = "other"
    now["setups"] = {"config": {"common": {"training.epochs": "60", "torch": "3.0"}}}
    drift = find_drift(now, stored)
    assert drift.missing == ["br"]
    assert {"training.epochs: 20 → 60", "torch: none → 3.0"} < set(drift.settings)
    assert any(each.startswith("prepared data: ") for each in drift.settings)


def test_other_data_and_no_common_system_are_refused(stored, now):
    with pytest.raises(DataError, match="other data"):
        find_drift({**now, "n_labels": 3}, stored)
    with pytest.raises(DataError, match=r"in common.*Give another folder"):
        find_drift({**now, "scores": {}}, stored)


def test_a_summary_is_found_in_a_report_or_a_comparison(tmp_path, stored):
    (tmp_path / "report").mkdir()
    file = tmp_path / "report" / "summary.json"
    file.write_text(json.dumps(stored))
    for place in (tmp_path, tmp_path / "report", file):
        assert read_summary(place) == json.loads(json.dumps(stored))
    with pytest.raises(DataError, match="holds no summary"):
        read_summary(tmp_path / "elsewhere")
    for text in ("{", "[]", "{}"):
        file.write_text(text)
        with pytest.raises(DataError, match=r"summary\.json is not"):
            read_summary(tmp_path)
