"""The scripts start; other tools' scores become the sets that our rules would choose."""

import runpy
import sys
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "peers"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import choose_sets
import exchange
import scikit_learn_logistic

import cells

BENCHMARKS = Path(cells.__file__).parent
LABELS = ["a", "b", "c", "d"]
THRESHOLDS = choose_sets.Thresholds(0.5, np.full(4, 0.5))
SCRIPTS = [each for each in sorted(BENCHMARKS.glob("*.py")) if each.stem != "harness"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda file: file.stem)
def test_every_script_says_how_it_is_called(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(script), run_name="__main__")
    assert f"python benchmarks/{script.name}" in capsys.readouterr().out


def test_rules_choose_the_best_of_all_sets():
    log_odds = np.random.default_rng(2).normal(-0.5, 2, (40, 4)).astype(np.float32)
    sets = list(chain.from_iterable(combinations(range(4), k) for k in range(1, 5)))
    is_in = np.array([[label in each for label in range(4)] for each in sets])
    log_probs = (
        np.log(expit(log_odds))[:, None] * is_in + np.log(expit(-log_odds))[:, None] * ~is_in
    ).sum(2)
    probs = np.exp(log_probs) / np.exp(log_probs).sum(1, keepdims=True)
    f1 = np.array([[2 * len(set(a) & set(b)) / (len(a) + len(b)) for b in sets] for a in sets])
    for rule, value in (("set", probs), ("f1", probs @ f1)):
        found, log_prob = choose_sets.choose_by_rule(log_odds, rule, THRESHOLDS, -np.inf)
        numbers = [sets.index(tuple(label for label in row if label >= 0)) for row in found]
        rows = np.arange(40)
        np.testing.assert_allclose(value[rows, numbers], value.max(1), rtol=1e-5)
        np.testing.assert_allclose(np.exp(log_prob), probs[rows, numbers], rtol=1e-4)


def test_scores_get_a_curve_and_probabilities_none():
    random = np.random.default_rng(3)
    truth = random.normal(-1, 2, (4000, 4))
    targets = (random.random((4000, 4)) < expit(truth)).astype(np.int8)
    found, _ = choose_sets.to_log_odds(5 * truth + 2, truth, targets, is_probability=False)
    assert np.abs(found - truth).mean() < 0.15
    kept, _ = choose_sets.to_log_odds(expit(truth), expit(truth), targets, is_probability=True)
    np.testing.assert_allclose(kept, logit(expit(truth)), atol=1e-2)


def test_the_threshold_is_the_best_on_valid_and_the_peers_own_if_none_is_better():
    random = np.random.default_rng(4)
    targets = (random.random((200, 10)) < 0.1).astype(np.int8)
    scores = 0.5 * targets + 0.3 * random.random((200, 10))
    assert choose_sets.best_threshold(scores, targets, "micro_f1", 0.45) == 0.45
    assert 0.2 < choose_sets.best_threshold(scores, targets, "micro_f1", 0.95) < 0.55
    assert exchange.best_micro_f1(targets, scores) == 1.0


def test_scores_of_many_labels_stay_in_their_columns(tmp_path):
    """With targets in int8, scikit-learn 1.9 exchanged the columns of more than 127 labels."""
    labels = [f"label-{number:03}" for number in range(130)]
    sets = [{labels[row % 129]} | ({labels[129]} if row % 2 else set()) for row in range(129 * 4)]
    part = exchange.Part(["words"] * len(sets), [sorted(each) for each in sets])
    data = exchange.Data(tmp_path, part, part, part)
    features = np.array([[row % 2, 1.0] for row in range(len(sets))])
    predict = scikit_learn_logistic.fit_logistic(10.0)(features, data.targets(part))
    probs = predict(features)
    assert probs[1::2, 129].min() > 0.9 > 0.1 > probs[::2, 129].max()
