import numpy as np
import pytest

from brute_force import all_sets
from choices import as_sets, choice_of, known, padded_sets, random_distributions
from setrnn.data.groups import Group
from setrnn.data.labels import LabelVocabulary
from setrnn.errors import ConfigError
from setrnn.systems.closure import Closure
from setrnn.systems.limits import Limits, SeenSets, set_keys
from setrnn.systems.rules.most_probable import propose, repair_sets

SEEN = [[], [0], [1, 3], [0, 2, 3], [2]]
LIMITS = [
    Limits(),
    Limits(min_labels=3),
    Limits(max_labels=1),
    Limits(min_labels=2, max_labels=2),
    Limits(required=["b", "c"]),
    Limits(forbidden=["a", "b"]),
    Limits(required=["a"], forbidden=["b"], max_labels=2),
    Limits(groups=[Group(["a", "c"], 1, exactly=True), Group(["b", "d"], 1)]),
]


AB, BOTH = Group(["a", "b"], 1), Group(["a", "b"], 2, exactly=True)


@pytest.mark.parametrize("seen", [None, SEEN])
@pytest.mark.parametrize("limits", LIMITS)
def test_proposed_sets_fit_and_repaired_ones_differ_only_if_they_must(limits, seen):
    choice = choice_of(random_distributions(2))
    ids = known(limits, 4, seen)
    candidates = choice.candidates.labels
    assert ids.fit(propose(ids, candidates, choice.marginals)).all()
    for before in candidates.swapaxes(0, 1):
        fits = ids.fit(before[:, None])[:, 0]
        after = repair_sets(ids, before, choice.marginals)
        assert as_sets(after[fits]) == as_sets(before[fits])


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
        ({"groups": [AB, Group(["b"], 1)]}, "'b' is in two groups"),
        ({"groups": [Group(["x"], 1, name="kind")]}, "The group 'kind' .at most 1. names none"),
        ({"groups": [AB], "required": ["a", "b"]}, "at most 1., but 2 of its labels are required"),
        ({"groups": [BOTH], "forbidden": ["a"]}, "exactly 2., but the model may predict 1"),
        ({"groups": [BOTH], "max_labels": 1}, "allow 2 to 4 labels, the other limits 0 to 1"),
        ({"groups": [AB], "min_labels": 4}, "allow 0 to 3 labels, the other limits 4 to 4"),
        ({"only_seen": True}, "label sets seen in training.*Train it again"),
    ],
)
def test_limits_that_no_set_can_meet_are_refused_in_a_line(values, message):
    with pytest.raises(ConfigError, match=message) as error:
        known(Limits(**values), 4)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"labels": "a", "n": 1}, r"must be a list. Write \['a'\]"),
        ({"labels": ["a"], "n": -1}, "0 or more, got -1"),
        ({"labels": [], "n": 1, "name": "kind"}, "'kind' .at most 1. has 0 labels"),
        ({"labels": ["a"], "n": 2, "exactly": True}, "exactly 2. has 1 labels"),
    ],
)
def test_groups_that_no_set_can_meet_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Group(**values)


def test_groups_and_a_hierarchy_are_refused_together():
    labels, closure = LabelVocabulary(("a", "b"), (2, 1)), Closure(np.array([[-1], [0]]))
    with pytest.raises(ConfigError, match=r"Groups and sets .* cannot be combined"):
        Limits(groups=[AB]).for_labels(labels, None, closure)


def test_limits_that_no_seen_set_meets_are_refused():
    with pytest.raises(ConfigError, match="None of the 5 label sets"):
        known(Limits(only_seen=True, required=["a", "b"]), 4, SEEN)
