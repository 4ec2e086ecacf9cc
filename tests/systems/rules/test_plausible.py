from dataclasses import replace

import numpy as np
import pytest

from brute_force import all_sets
from choices import as_sets, choice_of, choose_sets, expected_f1, padded_sets, random_distributions
from setrnn.data.groups import Group
from setrnn.systems.limits import PLAUSIBLE, SeenSets, no_limits
from setrnn.systems.rules import find_rule
from setrnn.systems.rules.plausible import Dependencies, choose_plausible, propose_groups


def choose(probs, weight, dependencies=None, rule="f1", limits=None):
    limits = no_limits(4) if limits is None else limits
    choice = choice_of(probs, replace(limits, plausible=weight, dependencies=dependencies))
    return choose_plausible(choice, find_rule(rule).rate, *choose_sets(rule, choice))


@pytest.mark.parametrize("weight", [0.01, 0.1, 100.0])
def test_the_set_has_the_largest_sum_of_expected_f1_and_log_probability(weight):
    probs = random_distributions(7) + 1e-9
    labels, log_probs = choose(probs, weight)
    for row, chosen, log_prob in zip(probs, as_sets(labels), log_probs, strict=True):
        values = [
            expected_f1(row, each) + weight * np.log(p)
            for each, p in zip(all_sets(4), row, strict=True)
        ]
        place = all_sets(4).index(chosen)
        assert values[place] == pytest.approx(max(values), abs=1e-6)
        assert np.exp(log_prob) == pytest.approx(row[place])


def test_of_two_likely_sets_the_union_is_not_predicted():
    """Each of two genres is likely, and no document has both."""
    sets = all_sets(4)
    probs = np.full((1, 16), 1e-6)
    probs[0, sets.index((0, 1))], probs[0, sets.index((0, 2))] = 0.5, 0.49
    free, _ = choose_sets("f1", choice_of(probs))
    assert as_sets(free) == [(0, 1, 2)]
    assert as_sets(choose(probs, PLAUSIBLE)[0]) == [(0, 1)]


def test_a_chosen_set_that_is_no_candidate_may_stay():
    probs = random_distributions(8) + 1e-6
    choice = choice_of(probs, replace(no_limits(4), plausible=1e-9), n_sets=2)
    free, log_probs = choose_sets("f1", choice)
    kept, _ = choose_plausible(choice, find_rule("f1").rate, free, log_probs)
    assert as_sets(kept) == as_sets(free)


def test_sets_are_chosen_within_the_limits():
    limits = replace(no_limits(4), min_labels=2)
    probs = random_distributions(9) + 1e-9
    labels, _ = choose(probs, 0.5, limits=limits)
    assert {len(each) for each in as_sets(labels)} <= {2, 3, 4}


def seen(sets, n_labels):
    return SeenSets(padded_sets(sets, n_labels), n_labels)


def many(random, n, n_labels, holds):
    """Random sets for which something holds."""
    found = set()
    while len(found) < n:
        each = tuple(np.flatnonzero(random.random(n_labels) < 0.4).tolist())
        if holds(each):
            found.add(each)
    return sorted(found)


def test_dependencies_are_those_that_the_sets_show_without_an_exception():
    def holds(each):
        return not {0, 1} <= {*each} and (2 not in each or 3 in each)

    random = np.random.default_rng(1)
    found = Dependencies.of(seen(many(random, 300, 14, holds), 14))
    every = all_sets(5)
    expected = [holds(each) for each in every]
    assert found.hold(padded_sets(every, 5)).tolist() == expected


def test_few_sets_and_independent_labels_show_no_dependencies():
    random = np.random.default_rng(2)
    few = many(random, 12, 14, lambda each: not {0, 1} <= {*each})
    independent = many(random, 400, 14, lambda each: True)
    for sets in (few, independent):
        assert Dependencies.of(seen(sets, 14)).hold(padded_sets(all_sets(5), 5)).all()


def test_labels_that_never_meet_are_proposed_as_a_group():
    def holds(each):
        return len({0, 1, 2} & {*each}) == 1

    def name(sets):
        return [[f"label {label}" for label in each] for each in sets]

    random = np.random.default_rng(4)
    first = Group(["label 0", "label 1", "label 2"], 1, exactly=True, name="group 1")
    assert propose_groups(name(many(random, 300, 14, holds))) == [first]
    at_most = [[], *many(random, 300, 14, holds)]
    assert propose_groups(name(at_most)) == [replace(first, exactly=False)]
    assert propose_groups(name(many(random, 400, 14, lambda each: True))) == []
    assert propose_groups([]) == propose_groups([[]]) == []


def test_a_set_against_a_dependency_is_replaced_even_if_it_is_the_most_probable():
    def holds(each):
        return not {0, 1} <= {*each}

    found = Dependencies.of(seen(many(np.random.default_rng(3), 300, 14, holds), 14))
    dependencies = replace(found, place=found.place[[0, 1, 2, 3, -1]])
    labels, _ = choose(random_distributions(10) + 1e-9, 0.3, dependencies)
    assert all(map(holds, as_sets(labels)))
