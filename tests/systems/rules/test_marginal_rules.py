import numpy as np
import pytest

from choices import all_sets, as_sets, choice_of, known, random_distributions
from setrnn.errors import ConfigError
from setrnn.systems.rules import Limits, choose_sets, find_rule
from setrnn.systems.rules.thresholds import Thresholds

THRESHOLDS = Thresholds(0.3, np.array([0.1, 0.2, 0.4, 0.7]))
BY_RULE = {"hamming": 0.5, "micro-f1": 0.3, "label-f1": THRESHOLDS.by_label}


def chosen_sets(rule, choice):
    return as_sets(choose_sets(find_rule(rule), choice)[0])


@pytest.mark.parametrize("rule", BY_RULE)
def test_the_labels_above_their_thresholds_are_predicted(rule):
    choice = choice_of(random_distributions(0), thresholds=THRESHOLDS)
    above = choice.marginals > BY_RULE[rule]
    wanted = [tuple(np.flatnonzero(row).tolist()) for row in above]
    assert chosen_sets(rule, choice) == wanted


def test_rule_hamming_expects_the_fewest_wrong_labels():
    probs = random_distributions(1, sharpness=1.0)
    for row, chosen in zip(probs, chosen_sets("hamming", choice_of(probs)), strict=True):

        def loss(guess, row=row):
            sets = zip(row, all_sets(4), strict=True)
            return sum(p * len(set(guess) ^ set(truth)) for p, truth in sets)

        assert loss(chosen) == pytest.approx(min(map(loss, all_sets(4))), abs=1e-6)


def test_half_is_not_over_half():
    probs = np.array([[0.5, 0.5, 0, 0]])
    assert chosen_sets("hamming", choice_of(probs)) == [()]


SEEN = [[0], [1, 3], [0, 2, 3], [2]]


@pytest.mark.parametrize("rule", BY_RULE)
@pytest.mark.parametrize(
    ("limits", "is_fitting"),
    [
        (Limits(min_labels=3), lambda s: len(s) >= 3),
        (Limits(max_labels=1), lambda s: len(s) <= 1),
        (Limits(required=["b", "c"], max_labels=3), lambda s: {1, 2} <= set(s) and len(s) <= 3),
        (Limits(forbidden=["a", "b"]), lambda s: not {0, 1} & set(s)),
        (Limits(only_seen=True), lambda s: list(s) in SEEN),
        (Limits(only_seen=True, required=["d"]), lambda s: list(s) in SEEN and 3 in s),
    ],
)
def test_limits_leave_the_set_of_largest_margins(rule, limits, is_fitting):
    choice = choice_of(random_distributions(2), known(limits, 4, SEEN), thresholds=THRESHOLDS)
    margins = choice.marginals.astype(float) - BY_RULE[rule]
    for row, chosen in zip(margins, chosen_sets(rule, choice), strict=True):
        assert is_fitting(chosen)
        best = max(row[list(each)].sum() for each in all_sets(4) if is_fitting(each))
        assert row[list(chosen)].sum() == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("rule", ["micro-f1", "label-f1"])
def test_without_thresholds_the_way_to_get_them_is_told(rule):
    with pytest.raises(ConfigError, match="setrnn calibrate MODEL VALID") as error:
        chosen_sets(rule, choice_of(random_distributions(3)))
    assert "\n" not in str(error.value)
