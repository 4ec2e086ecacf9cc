"""The contract of RULES: under any limits, each chooses the best set that fits."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from brute_force import all_sets
from choices import (
    NAMES,
    as_sets,
    choice_of,
    choose_sets,
    expected_f1,
    padded_sets,
    random_distributions,
)
from setrnn.checks import check_rule
from setrnn.data.groups import Group
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.closure import Closure
from setrnn.systems.limits import Limits, no_limits
from setrnn.systems.products import most_probable_products
from setrnn.systems.rules import RULES, count_candidates, find_rule
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import OVER_HALF, Thresholds

EVERY_RULE = pytest.mark.parametrize("rule", RULES)
LABELS = LabelVocabulary(NAMES[:4], (4, 3, 2, 1))
# All labels above each label: none, two trees, and two hierarchies with several parents.
ABOVE = {
    "flat": None,
    "chain": [[], [0], [0, 1], []],
    "upwards": [[1, 3], [3], [], []],
    "diamond": [[], [0], [0], [0, 1, 2]],
    "two parents": [[], [], [0, 1], [1]],
}
EVERY_HIERARCHY = pytest.mark.parametrize("hierarchy", ABOVE)
SEEN = [[], [0], [1, 3], [0, 2, 3], [2], [0, 1], [0, 1, 2, 3]]
THRESHOLDS = Thresholds(0.4, np.array([0.2, 0.5, 0.3, 0.6]))
LIMITS = [
    Limits(),
    Limits(min_labels=2),
    Limits(max_labels=1),
    Limits(min_labels=1, max_labels=3, required=["d"]),
    Limits(required=["c"]),
    Limits(forbidden=["b"]),
    Limits(required=["b"], forbidden=["d"]),
    Limits(max_labels=0),
    Limits(only_seen=True),
    Limits(only_seen=True, min_labels=2),
]
PAIR, ALL_BUT_A = ("a", "c"), ("b", "c", "d")
GROUPS = [
    Limits(groups=[Group(PAIR, 1)]),
    Limits(groups=[Group(PAIR, 1, exactly=True)], max_labels=2),
    Limits(groups=[Group(PAIR, 1), Group(["b", "d"], 1, exactly=True)], min_labels=1),
    Limits(groups=[Group(ALL_BUT_A, 2, exactly=True)], forbidden=["b"]),
    Limits(groups=[Group(ALL_BUT_A, 1)], required=["d"], min_labels=2),
    Limits(groups=[Group(ALL_BUT_A, 0)]),
    Limits(groups=[Group(PAIR, 1, exactly=True)], only_seen=True),
]


def list_fitting(limits, above):
    """The sets that fit, by the meaning of each limit."""
    required, forbidden = (
        {NAMES.index(name) for name in names} for names in (limits.required, limits.forbidden)
    )
    most = 4 if limits.max_labels is None else limits.max_labels
    return [
        s
        for s in all_sets(4)
        if required <= {*s}
        and not forbidden & {*s}
        and limits.min_labels <= len(s) <= most
        and (above is None or all({*above[label]} <= {*s} for label in s))
        and (not limits.only_seen or list(s) in SEEN)
        and all(map(partial(fits_group, s), limits.groups))
    ]


def fits_group(labels, group):
    n = len({NAMES[label] for label in labels} & {*group.labels})
    return n == group.n if group.exactly else n <= group.n


CASES = [(name, limits) for name in ABOVE for limits in LIMITS]
CASES += [("flat", limits) for limits in GROUPS]
FITTING = [case for case in CASES if list_fitting(case[1], ABOVE[case[0]])]
EVERY_LIMIT = pytest.mark.parametrize(("hierarchy", "limits"), FITTING)


def limits_of(limits, hierarchy):
    """The limits in ids, and the sets that fit."""
    above = ABOVE[hierarchy]
    closure = None if above is None else Closure(Ragged.from_lists(above).padded(min_width=1))
    ids = limits.for_labels(LABELS, Ragged.from_lists(SEEN), closure)
    return ids, list_fitting(limits, above)


@EVERY_RULE
def test_every_rule_keeps_its_promises(rule):
    check_rule(RULES[rule])


@EVERY_LIMIT
def test_what_fits_is_what_was_asked_for(hierarchy, limits):
    ids, fitting = limits_of(limits, hierarchy)
    fits = ids.fit(padded_sets(all_sets(4), 4)[None])[0]
    assert [s for s, fit in zip(all_sets(4), fits, strict=True) if fit] == fitting
    if not limits.only_seen:
        assert tuple(sorted(ids.smallest_set())) in fitting


@pytest.mark.parametrize(("hierarchy", "limits"), [each for each in CASES if each not in FITTING])
def test_limits_that_no_set_fits_are_refused(hierarchy, limits):
    with pytest.raises(ConfigError):
        limits_of(limits, hierarchy)


def worth(rule, probs, chosen):
    """What a rule wants as much as possible of, by its definition."""
    marginals = [
        sum(p for p, s in zip(probs, all_sets(4), strict=True) if label in s) for label in range(4)
    ]
    if rule in ("set", "sequence"):
        return probs[all_sets(4).index(tuple(chosen))]
    if rule == "f1":
        return expected_f1(probs, chosen)
    least = {
        "hamming": [OVER_HALF] * 4,
        "micro-f1": [THRESHOLDS.common] * 4,
        "label-f1": THRESHOLDS.by_label,
    }[rule]
    return sum(marginals[label] - least[label] for label in chosen)


@EVERY_LIMIT
@EVERY_RULE
def test_every_rule_chooses_the_best_set_that_fits(rule, hierarchy, limits):
    """Except with both a hierarchy and a limit on the size, where rules of marginals come near."""
    probs = random_distributions(3, n=12) + 1e-12
    ids, fitting = limits_of(limits, hierarchy)
    labels, log_probs = choose_sets(rule, choice_of(probs, ids, thresholds=THRESHOLDS))
    has_sizes = limits.min_labels > 0 or limits.max_labels is not None
    is_exact = rule in ("set", "sequence", "f1") or hierarchy == "flat" or not has_sizes
    for row, chosen, log_prob in zip(probs, as_sets(labels), log_probs, strict=True):
        assert chosen in fitting
        best = max(worth(rule, row, each) for each in fitting)
        assert not is_exact or worth(rule, row, chosen) == pytest.approx(best, abs=1e-6)
        assert np.exp(log_prob) == pytest.approx(row[all_sets(4).index(chosen)], rel=1e-6)


@pytest.mark.parametrize("rule", [name for name, each in RULES.items() if each.rate])
def test_a_rule_rates_sets_by_what_it_makes_largest(rule):
    probs = random_distributions(6, n=12)
    sets = np.broadcast_to(padded_sets(all_sets(4), 4), (12, 16, 4))
    values = find_rule(rule).rate(choice_of(probs, thresholds=THRESHOLDS), sets)
    for row, found in zip(probs, values, strict=True):
        expected = [worth(rule, row, each) for each in all_sets(4)]
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("n_sets", [1, 4])
@EVERY_LIMIT
@EVERY_RULE
def test_with_few_candidates_the_set_fits_and_has_its_own_probability(
    rule, hierarchy, limits, n_sets
):
    probs = random_distributions(4)
    ids, fitting = limits_of(limits, hierarchy)
    choice = choice_of(probs, ids, n_sets, THRESHOLDS)
    labels, log_probs = choose_sets(rule, choice)
    assert {*as_sets(labels)} <= {*fitting}
    asked = choice.set_log_probs(np.arange(len(probs)), labels[:, None])[:, 0]
    np.testing.assert_allclose(log_probs, asked, atol=1e-9)
    if rule == "set":  # never less probable than the candidates that fit
        best = np.where(choice.fits, choice.candidates.log_probs, -np.inf).max(axis=1)
        assert (log_probs >= best - 1e-9).all()


@EVERY_HIERARCHY
def test_of_independent_labels_the_most_probable_closed_set_is_exact(hierarchy):
    """However few candidates there are: they are not the whole distribution."""
    logits = np.random.default_rng(5).normal(0, 2, (30, 4)).astype(np.float32)
    ids, fitting = limits_of(Limits(), hierarchy)
    candidates = most_probable_products(logits, 2)
    choice = Choice(candidates, ids, lambda rows, sets: candidates.take(rows).log_probs_of(sets))
    _, log_probs = choose_sets("set", choice)
    every = np.broadcast_to(padded_sets(fitting, 4), (30, len(fitting), 4))
    best = candidates.log_probs_of(every).max(axis=1)
    np.testing.assert_allclose(log_probs, best, atol=1e-6)


def test_rules_ask_for_as_many_sets_as_they_need():
    for name, rule in RULES.items():
        assert (count_candidates(rule) == 1) == (name in ("set", "sequence"))
        assert count_candidates(rule, 99, no_limits(4)) == 99
        assert count_candidates(rule, needed_by_calibration=20) == 20
    is_limited = Limits(min_labels=1).for_labels(LABELS, None)
    assert count_candidates(RULES["set"], 2, is_limited) == count_candidates() > 2


def test_an_unknown_rule_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'set'"):
        find_rule("sett")


def test_as_many_sets_are_scored_under_limits_however_many_are_found():
    asked = []
    sets = np.arange(50, dtype=np.int32)[None, :, None]  # one label each
    limits = replace(no_limits(60), min_labels=20)

    def set_log_probs(rows, label_sets):
        asked.append(label_sets.shape[1])
        return np.zeros(label_sets.shape[:2])

    for n_sets in (16, 50):
        candidates = SetCandidates(sets[:, :n_sets], np.log(np.full((1, n_sets), 0.01)))
        choose_sets("set", Choice(candidates, limits, set_log_probs))
    assert asked[0] == asked[2]
