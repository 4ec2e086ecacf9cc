"""Scores that drift, and scores that do not."""

import copy
import json

import numpy as np
import pytest

from made_comparison import made_comparison
from setrnn.comparison.statistics import bootstrap
from setrnn.errors import DataError
from setrnn.methods import METHODS as METHODS_KNOWN
from setrnn.report.build import summarise_scores
from setrnn.report.drift import find_drift, read_summary

METHODS = ("br", "seq2seq-rnn", "vinyals-sample", "set-rnn")


def summary_of(n_seeds=3):
    comparison, records = made_comparison(METHODS, n_seeds, n_documents=150)
    return summarise_scores(comparison, records, bootstrap(comparison, records, draws=99))


@pytest.fixture(scope="module")
def stored():
    setups = {"config": {"common": {"training.epochs": "20"}, "differing": {}}}
    return {**summary_of(), "setups": setups}


@pytest.fixture
def now(stored):
    return copy.deepcopy(stored)


def shift(summary, system, by, rule="set", measure="instance_f1"):
    summary["scores"][system][rule][measure]["mean"] += by


def drifted(now, stored):
    return [(each.system, each.rule, each.measure) for each in find_drift(now, stored).drifted]


def test_a_comparison_has_not_drifted_from_itself(stored, now):
    drift = find_drift(now, stored)
    assert {each.verdict for each in drift.changes} == {"same"}
    assert not drift.settings
    assert not drift.notes
    assert {each.system for each in drift.changes} == set(METHODS)


def test_a_difference_is_a_drift_from_what_the_spread_allows(stored, now):
    change = next(each for each in find_drift(now, stored).changes if each.system == "set-rnn")
    assert (change.rule, change.measure) == ("set", "instance_f1")
    shift(now, "set-rnn", 0.99 * change.allowed)
    assert not drifted(now, stored)
    shift(now, "set-rnn", 0.02 * change.allowed)
    assert drifted(now, stored) == [("set-rnn", "set", "instance_f1")]


def test_the_rule_is_the_written_one(stored, now):
    for number, system in enumerate(METHODS[1:]):
        for side in (stored, now):
            for rule in side["scores"][system].values():
                for score in rule.values():
                    score |= {"std": 0.01 * (number + 1), "low": 0.4, "high": 0.4}
    allowed = {
        each.system: each.allowed
        for each in find_drift(now, stored).changes
        if each.measure == "instance_f1"
    }
    factor = 4 * (2 / 3) ** 0.5
    assert allowed["set-rnn"] == pytest.approx(0.03 * factor)  # its own deviation
    assert allowed["seq2seq-rnn"] == pytest.approx(0.02 * factor)  # the median


def test_a_classical_system_is_allowed_a_quarter_of_the_error_over_documents(stored, now):
    score = stored["scores"]["br"]["set"]["instance_f1"]
    quarter = (score["high"] - score["low"]) / 3.92 / 4
    shift(now, "br", 0.9 * quarter)
    assert not drifted(now, stored)
    shift(now, "br", 0.2 * quarter)
    assert drifted(now, stored) == [("br", "set", "instance_f1")]


def test_fewer_seeds_allow_more(stored):
    def allowed(n_seeds):
        found = find_drift(summary_of(n_seeds), stored).changes
        return {(each.system, each.measure): each.allowed for each in found}

    one, three = allowed(1), allowed(3)
    assert all(one["set-rnn", name] > three["set-rnn", name] for name in ("label_f1", "micro_f1"))


def test_one_seed_on_both_sides_still_allows_something():
    summary = summary_of(1)
    allowed = {each.system: each.allowed for each in find_drift(summary, summary).changes}
    assert allowed["set-rnn"] > allowed["br"] > 0


def test_settings_that_differ_are_named_with_their_systems(stored, now):
    now["setups"] = {
        "config": {
            "common": {"seed": "0"},
            "differing": {"training.epochs": {"20": ["br", "set-rnn"], "60": ["seq2seq-rnn"]}},
        },
        "environment": {"common": {"torch": "3.0"}, "differing": {}},
    }
    texts = [str(each) for each in find_drift(now, stored).settings]
    assert "training.epochs: 20 → 60 (seq2seq-rnn)" in texts
    assert "torch: not there → 3.0" in texts


def test_missing_systems_and_other_preparation_are_said(stored, now):
    del now["scores"]["br"]
    now["data_hash"] = "other"
    drift = find_drift(now, stored)
    assert list(drift.missing) == ["br"]
    assert "prepared data" in drift.notes[0]


def test_other_data_and_no_common_system_are_refused(stored, now):
    with pytest.raises(DataError, match="other data"):
        find_drift({**now, "n_labels": 3}, stored)
    with pytest.raises(DataError, match="in common"):
        find_drift({**now, "scores": {}}, stored)
    with pytest.raises(DataError, match="Give another folder"):
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


@pytest.mark.parametrize("log_spread", [0.0, 1.0], ids=["same spread", "spreads of a factor of e"])
@pytest.mark.parametrize(("n_deviations", "least", "most"), [(4, 0.0005, 0.007), (3, 0.005, 0.02)])
def test_few_scores_drift_by_chance(log_spread, n_deviations, least, most, monkeypatch):
    """Normal scores of ten networks, three seeds on both sides: what docs/reproduce.md says."""
    monkeypatch.setattr("setrnn.report.drift.N_DEVIATIONS", n_deviations)
    networks = [name for name, method in METHODS_KNOWN.items() if method.is_network][:10]
    random, n_drifted, n_times = np.random.default_rng(0), 0, 1000

    def draw(spreads):
        runs = random.normal(0.7, spreads, (3, len(spreads)))
        means, stds = runs.mean(0), runs.std(0, ddof=1)
        scores = {
            name: {
                "set": {
                    "instance_f1": {
                        "mean": mean, "std": std, "n_seeds": 3, "low": mean, "high": mean
                    }
                }
            }
            for name, mean, std in zip(networks, means, stds, strict=True)
        }  # fmt: skip
        return {
            "data": "made-up", "n_documents": {}, "n_labels": 1, "data_hash": "0",
            "own_rules": dict.fromkeys(networks, "set"), "scores": scores,
        }  # fmt: skip

    for _ in range(n_times):
        spreads = 0.005 * np.exp(log_spread * random.normal(size=len(networks)))
        n_drifted += len(find_drift(draw(spreads), draw(spreads)).drifted)
    assert least < n_drifted / (n_times * len(networks)) < most
