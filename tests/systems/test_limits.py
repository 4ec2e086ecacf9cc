import numpy as np
import pytest

from choices import all_sets, as_sets, choice_of, known, padded_sets, random_distributions
from setrnn.errors import ConfigError
from setrnn.systems.limits import Limits, SeenSets, set_keys
from setrnn.systems.rules import choose_sets, find_rule
from setrnn.systems.rules.most_probable import make_likely_sets, repair_sets

SEEN = [[], [0], [1, 3], [0, 2, 3], [2]]
CASES = [
    (Limits(), lambda s: True),
    (Limits(min_labels=3), lambda s: len(s) >= 3),
    (Limits(max_labels=1), lambda s: len(s) <= 1),
    (Limits(min_labels=2, max_labels=2), lambda s: len(s) == 2),
    (Limits(required=["b", "c"]), lambda s: {1, 2} <= set(s)),
    (Limits(forbidden=["a", "b"]), lambda s: not {0, 1} & set(s)),
    (Limits(required=["a"], forbidden=["b"], max_labels=2), lambda s: 0 in s and 1 not in s),
    (Limits(only_seen=True), lambda s: list(s) in SEEN),
    (Limits(only_seen=True, min_labels=2), lambda s: list(s) in SEEN and len(s) > 1),
]


@pytest.mark.parametrize(("limits", "is_fitting"), CASES)
def test_what_fits_is_what_was_asked_for(limits, is_fitting):
    sets = all_sets(4)
    fits = known(limits, 4, SEEN).fit(padded_sets(sets, 4)[None])[0]
    wanted = [is_fitting(each) and len(each) <= (limits.max_labels or 4) for each in sets]
    assert fits.tolist() == [bool(each) for each in wanted]


@pytest.mark.parametrize("rule", ["set", "sequence"])
@pytest.mark.parametrize(("limits", "is_fitting"), CASES)
def test_where_all_sets_are_candidates_the_most_probable_that_fits_is_taken(
    limits, is_fitting, rule
):
    probs = random_distributions(0) + 1e-12
    choice = choice_of(probs, known(limits, 4, SEEN))
    labels, log_probs = choose_sets(find_rule(rule), choice)
    most = limits.max_labels or 4
    for row, chosen, log_prob in zip(probs, as_sets(labels), log_probs, strict=True):
        fitting = [
            p for p, s in zip(row, all_sets(4), strict=True) if is_fitting(s) and len(s) <= most
        ]
        assert is_fitting(chosen)
        assert np.exp(log_prob) == pytest.approx(max(fitting), rel=1e-6)


@pytest.mark.parametrize(("limits", "is_fitting"), CASES)
def test_where_no_candidate_fits_a_better_set_is_looked_for(limits, is_fitting):
    """With few candidates, the chosen set is never less probable than those of them that fit."""
    probs = random_distributions(1)
    choice = choice_of(probs, known(limits, 4, SEEN), n_sets=2)
    labels, log_probs = choose_sets(find_rule("set"), choice)
    assert choice.limits.fit(labels[:, None]).all()
    best = np.where(choice.fits, choice.candidates.log_probs, -np.inf).max(axis=1)
    assert (log_probs >= best - 1e-9).all()


@pytest.mark.parametrize("seen", [None, SEEN])
@pytest.mark.parametrize(("limits", "is_fitting"), CASES[:7])
def test_repaired_and_likely_sets_fit(limits, is_fitting, seen):
    choice = choice_of(random_distributions(2))
    ids = known(limits, 4, seen)
    repaired = repair_sets(ids, choice.candidates.labels, choice.marginals)
    assert ids.fit(repaired).all()
    assert ids.fit(make_likely_sets(ids, choice.marginals)).all()


@pytest.mark.parametrize(("limits", "is_fitting"), CASES[:7])
def test_a_set_that_fits_needs_no_repair(limits, is_fitting):
    choice = choice_of(random_distributions(3))
    ids = known(limits, 4)
    candidates = choice.candidates.labels
    again = repair_sets(ids, candidates, choice.marginals)
    for before, after in zip(
        candidates.reshape(-1, 4), again.reshape(-1, again.shape[2]), strict=True
    ):
        if ids.fit(before[None, None])[0, 0]:
            assert as_sets([after]) == as_sets([before])


def test_the_best_seen_sets_are_those_of_the_largest_sums():
    values = np.random.default_rng(0).standard_normal((6, 4))
    limits = known(Limits(only_seen=True), 4, SEEN)
    found, sums = limits.seen.best(values, 3)
    for row, sets, totals in zip(values, found, sums, strict=True):
        wanted = sorted((row[each].sum() for each in SEEN), reverse=True)[:3]
        np.testing.assert_allclose(totals, wanted, atol=1e-12)
        assert [row[list(s)].sum() for s in as_sets(sets)] == pytest.approx(wanted)


def test_keys_of_sets_do_not_depend_on_order_or_padding_and_differ():
    sets = padded_sets(all_sets(5), 5)
    keys = set_keys(sets, 5)
    assert len(set(keys.tolist())) == 32
    np.testing.assert_array_equal(set_keys(sets[:, ::-1], 5), keys)
    seen = SeenSets(sets[3:7], 5)
    assert seen.contain(sets[None])[0].tolist() == [3 <= number < 7 for number in range(32)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"min_labels": -1}, "min_labels.* -1"),
        ({"max_labels": -2}, "max_labels.* -2"),
        ({"min_labels": 3, "max_labels": 2}, "min_labels is 3.*max_labels is 2"),
        ({"required": ["a", "b"], "max_labels": 1}, "2 labels are required.*max_labels is 1"),
        ({"required": ["a", "b"], "forbidden": ["b"]}, "'b' is.*required and forbidden"),
        ({"required": "a"}, r"required.*list.*\['a'\]"),
        ({"min_labels": 5}, "min_labels is 5.* 4 labels, 0 .*forbidden"),
        ({"min_labels": 4, "forbidden": ["a"]}, " 1 of them forbidden"),
        ({"required": ["aa"]}, "no label 'aa'.*'a'"),
        ({"forbidden": ["sport"]}, "no label 'sport'.* a, b, c, d"),
        ({"only_seen": True}, "label sets seen in training.*Train it again"),
    ],
)
def test_limits_that_no_set_can_meet_are_refused_in_a_line(values, message):
    with pytest.raises(ConfigError, match=message) as error:
        known(Limits(**values), 4)
    assert "\n" not in str(error.value)


def test_limits_that_no_seen_set_meets_are_refused():
    with pytest.raises(ConfigError, match="None of the 5 label sets"):
        known(Limits(only_seen=True, required=["a", "b"]), 4, SEEN)
