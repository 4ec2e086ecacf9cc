from dataclasses import replace

import numpy as np
import pytest

from choices import NAMES, as_sets, choice_of, known, random_distributions
from setrnn.errors import ConfigError
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.limits import Limits, no_limits
from setrnn.systems.products import ProductCandidates
from setrnn.systems.rules import (
    RULES,
    choose_sets,
    count_candidates,
    count_completions,
    find_rule,
)
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import Thresholds

THRESHOLDS = Thresholds(0.4, np.array([0.2, 0.5, 0.3, 0.6]))
LIMITS = [
    Limits(),
    Limits(min_labels=2),
    Limits(max_labels=1),
    Limits(required=["c"], forbidden=["a"]),
    Limits(min_labels=2, max_labels=3, required=["d"]),
    Limits(max_labels=0),
    Limits(forbidden=NAMES[:4]),
]


@pytest.mark.parametrize("n_sets", [1, 4, None])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", RULES)
def test_every_rule_predicts_a_set_that_fits_and_tells_its_probability(name, limits, n_sets):
    probs = random_distributions(0)
    choice = choice_of(probs, limits, n_sets, THRESHOLDS)
    labels, log_probs = choose_sets(find_rule(name), choice)
    assert choice.limits.fit(labels[:, None]).all()
    asked = choice.set_log_probs(np.arange(len(probs)), labels[:, None])[:, 0]
    np.testing.assert_allclose(log_probs, asked, atol=1e-9)
    assert all(list(each) == sorted(set(each)) for each in as_sets(labels))


@pytest.mark.parametrize("name", RULES)
def test_no_documents_get_no_sets(name):
    choice = choice_of(np.zeros((0, 16)), thresholds=THRESHOLDS)
    labels, log_probs = choose_sets(find_rule(name), choice)
    assert len(labels) == len(log_probs) == 0


@pytest.mark.parametrize("name", RULES)
def test_without_labels_only_the_empty_set_is_left(name):
    thresholds = Thresholds(0.4, np.zeros(0))
    logits = np.zeros((3, 0), dtype=np.float32)
    nothing = np.full((3, 1, 1), -1, dtype=np.int32)
    product = ProductCandidates(nothing, np.zeros((3, 1)), logits)
    for candidates in (SetCandidates(nothing, np.zeros((3, 1))), product):
        choice = Choice(candidates, no_limits(0), lambda rows, sets: sets, thresholds)
        labels, log_probs = choose_sets(find_rule(name), choice)
        assert as_sets(labels) == [()] * 3
        assert not log_probs.any()


@pytest.mark.parametrize(("name", "source"), [("set", "sets"), ("sequence", "sequences")])
def test_the_rules_of_the_paper_take_the_most_probable_of_their_source(name, source):
    probs = random_distributions(1)
    labels, log_probs = choose_sets(find_rule(name), choice_of(probs))
    assert find_rule(name).source == source
    np.testing.assert_allclose(np.exp(log_probs), probs.max(axis=1))


def test_only_rules_that_go_by_the_distribution_ask_for_many_sets():
    for name, rule in RULES.items():
        assert (count_candidates(rule) == 1) == (name in ("set", "sequence"))
        assert count_candidates(rule, 99, no_limits(4)) == 99
        assert count_candidates(rule, needed_by_calibration=20) == 20


def test_limits_and_marginals_need_many_sets_and_completions_need_more():
    is_limited = known(Limits(min_labels=1), 4)
    assert count_candidates(RULES["set"], 2, is_limited) == count_candidates() > 2
    assert count_completions(3) > count_candidates()
    assert count_completions(999) == 999


def test_an_unknown_rule_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'set'"):
        find_rule("sett")


def test_as_many_sets_are_scored_under_limits_however_many_are_found():
    n_labels, asked = 60, []
    sets = np.arange(50, dtype=np.int32)[None, :, None]  # one label each
    limits = replace(no_limits(n_labels), min_labels=20)

    def set_log_probs(rows, label_sets):
        asked.append(label_sets.shape[1])
        return np.zeros(label_sets.shape[:2])

    for n_sets in (16, 50):
        candidates = SetCandidates(sets[:, :n_sets], np.log(np.full((1, n_sets), 0.01)))
        choose_sets(find_rule("set"), Choice(candidates, limits, set_log_probs))
    assert asked[0] == asked[2]
