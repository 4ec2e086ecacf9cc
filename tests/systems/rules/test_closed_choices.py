import numpy as np
import pytest

from choices import (
    all_sets,
    as_sets,
    asked_of,
    choice_of,
    expected_f1,
    padded_sets,
    random_distributions,
)
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.systems.closure import Closure, find_best_closed
from setrnn.systems.limits import Limits
from setrnn.systems.products import most_probable_products
from setrnn.systems.rules import RULES, choose_sets, find_rule
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import OVER_HALF, Thresholds

NAMES = ("a", "b", "c", "d", "e", "f")
# All labels above each label: two trees, and two hierarchies with several parents.
ABOVE = {
    "chain": [[], [0], [0, 1], []],
    "upwards": [[1, 3], [3], [], []],
    "diamond": [[], [0], [0], [0, 1, 2]],
    "two parents": [[], [], [0, 1], [1]],
}
THRESHOLDS = Thresholds(0.4, np.array([0.2, 0.5, 0.3, 0.6]))
LIMITS = [
    Limits(),
    Limits(min_labels=2),
    Limits(max_labels=2),
    Limits(min_labels=1, max_labels=3),
    Limits(required=["d"]),
    Limits(forbidden=["b"]),
]


def closed(sets, above):
    return [s for s in sets if all(set(above[label]) <= set(s) for label in s)]


def limits_of(limits, above, seen=None):
    labels = LabelVocabulary(NAMES[: len(above)], tuple(range(len(above), 0, -1)))
    closure = Closure(Ragged.from_lists(above).padded(min_width=1))
    seen = None if seen is None else Ragged.from_lists(seen)
    return limits.for_labels(labels, seen, closure)


def fitting(limits, above):
    sets = all_sets(len(above))
    of = limits_of(limits, above)
    given = Limits(**{**vars(limits), "closed": None})
    names = [{NAMES[label] for label in s} for s in sets]
    return [
        s
        for s, own in zip(sets, names, strict=True)
        if s in closed(sets, above)
        and set(given.required) <= own
        and not own & set(given.forbidden)
        and given.min_labels <= len(s) <= (given.max_labels or len(above))
    ], of


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", ABOVE)
def test_what_fits_is_closed(name, limits):
    above = ABOVE[name]
    wanted, of = fitting(limits, above)
    fits = of.fit(padded_sets(all_sets(4), 4)[None])[0]
    assert [s for s, fit in zip(all_sets(4), fits, strict=True) if fit] == wanted
    assert tuple(sorted(of.smallest_set())) in wanted


def worth(rule, choice, probs, row, chosen):
    """What a rule wants as much as possible of, by its definition."""
    marginals = [
        sum(p for p, s in zip(probs[row], all_sets(4), strict=True) if label in s)
        for label in range(4)
    ]
    if rule in ("set", "sequence"):
        return probs[row][all_sets(4).index(tuple(chosen))]
    if rule == "f1":
        return expected_f1(probs[row], chosen)
    least = {
        "hamming": [OVER_HALF] * 4,
        "micro-f1": [THRESHOLDS.common] * 4,
        "label-f1": THRESHOLDS.by_label,
    }[rule]
    return sum(marginals[label] - least[label] for label in chosen)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", ABOVE)
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_chooses_the_best_closed_set(rule, name, limits):
    probs = random_distributions(3, n=7)
    wanted, of = fitting(limits, ABOVE[name])
    choice = choice_of(probs, of, thresholds=THRESHOLDS)
    labels, _ = choose_sets(find_rule(rule), choice)
    for row, chosen in enumerate(as_sets(labels)):
        assert tuple(sorted(chosen)) in wanted
        best = max(worth(rule, choice, probs, row, s) for s in wanted)
        assert worth(rule, choice, probs, row, sorted(chosen)) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_with_few_candidates_the_chosen_set_is_closed(rule):
    probs = random_distributions(4)
    wanted, of = fitting(Limits(), ABOVE["diamond"])
    choice = choice_of(probs, of, 2, THRESHOLDS)
    labels, log_probs = choose_sets(find_rule(rule), choice)
    assert set(as_sets(labels)) <= set(wanted)
    asked = asked_of(probs)(np.arange(len(probs)), labels[:, None])[:, 0]
    np.testing.assert_allclose(log_probs, asked, atol=1e-9)


@pytest.mark.parametrize("name", ABOVE)
def test_of_independent_labels_the_most_probable_closed_set_is_exact(name):
    """However few candidates there are: they are not the whole distribution."""
    logits = np.random.default_rng(5).normal(0, 2, (30, 4)).astype(np.float32)
    wanted, of = fitting(Limits(), ABOVE[name])
    candidates = most_probable_products(logits, 2)
    choice = Choice(candidates, of, lambda rows, sets: candidates.take(rows).log_probs_of(sets))
    _, log_probs = choose_sets(find_rule("set"), choice)
    all_wanted = np.broadcast_to(padded_sets(wanted, 4), (30, len(wanted), 4))
    best = candidates.log_probs_of(all_wanted).max(axis=1)
    np.testing.assert_allclose(log_probs, best, atol=1e-6)


def test_only_seen_sets_that_are_closed_are_chosen():
    seen = [[0], [1], [0, 1], [0, 1, 2, 3]]
    of = limits_of(Limits(only_seen=True), ABOVE["chain"], seen)
    choice = choice_of(random_distributions(6), of, thresholds=THRESHOLDS)
    for rule in RULES:
        labels, _ = choose_sets(find_rule(rule), choice)
        assert set(as_sets(labels)) <= {(0,), (0, 1), (0, 1, 2, 3)}


@pytest.mark.parametrize("seed", range(16))
def test_the_best_closed_set_of_a_random_hierarchy_equals_brute_force(seed):
    """With several parents, with sizes and without, and with required labels."""
    random = np.random.default_rng(seed)
    n = 7
    order = random.permutation(n)
    above = [set() for _ in range(n)]
    for place, label in enumerate(order):
        for parent in random.choice(order[:place], min(place, random.integers(0, 4)), False):
            above[label] |= {int(parent)} | above[parent]
    closure = Closure(Ragged.from_lists([sorted(each) for each in above]).padded(min_width=1))
    values = random.standard_normal((n + 1, n))
    required = sorted({1} | above[1]) if seed % 2 else []
    sets = [s for s in closed(all_sets(n), above) if set(required) <= set(s)]
    total, row, found = find_best_closed(closure, range(n), values[:1], None, required)
    assert row == 0
    assert total == pytest.approx(max(values[0][list(s)].sum() for s in sets))
    assert tuple(sorted(found)) in sets
    sizes = [(size, size) for size in range(n + 1)]
    total, row, found = find_best_closed(closure, range(n), values, sizes, required)
    assert len(found) == row
    assert total == pytest.approx(max(values[len(s)][list(s)].sum() for s in sets))


def test_closing_and_pruning_change_as_little_as_possible():
    for above in ABOVE.values():
        closure = Closure(Ragged.from_lists(above).padded(min_width=1))
        sets = all_sets(4)
        up, down = (as_sets(f(padded_sets(sets, 4))) for f in (closure.close, closure.prune))
        good = closed(sets, above)
        for s, more, fewer in zip(sets, up, down, strict=True):
            larger = [each for each in good if set(s) <= set(each)]
            smaller = [each for each in good if set(each) <= set(s)]
            assert more == min(larger, key=len)
            assert fewer == max(smaller, key=len)
