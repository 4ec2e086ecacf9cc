import time

import numpy as np
import pytest

from setrnn.data.hierarchy import Hierarchy, describe_fit, list_open, score_in_hierarchy
from setrnn.errors import DataError

# d has two parents, of which one has a parent itself.
TREE = Hierarchy({"b": ["a"], "c": ["a"], "d": ["b", "e"]})
DEEP = {
    "chain": {f"{n}": [f"{n - 1}"] for n in range(1, 250)},
    "diamond": {f"{n}{side}": [f"{n - 1}a", f"{n - 1}b"] for n in range(1, 100) for side in "ab"},
}


def test_closing_adds_every_label_above_once():
    assert TREE.close(["d"]) == ("d", "b", "e", "a")
    assert TREE.close([]) == ()
    assert TREE.close(["x", "a"]) == ("x", "a")
    assert TREE.ancestors("d") == ("b", "e", "a")


def test_a_set_is_closed_if_it_equals_its_closure():
    for labels in ("", "a", "b", "ab", "abd", "abde", "xe", "abc"):
        assert TREE.is_closed(labels) == (set(TREE.close(labels)) == set(labels))


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": "a"}, "'a' is its own parent"),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, "cycle"),
        ({str(n): [str(n + 1)] for n in range(300)}, "more than 256"),
        *(({"a": wrong}, "must be labels") for wrong in (5, None, [""], [3], [["b"]], {"b": 1})),
    ],
)
def test_parents_that_are_not_labels_or_above_themselves_are_refused(parents, message):
    with pytest.raises(DataError, match=message):
        Hierarchy(parents)


def test_a_hierarchy_with_too_many_pairs_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("setrnn.data.hierarchy.MAX_PAIRS", 4)
    Hierarchy({"b": ["a"], "c": ["a"], "d": ["b"]})  # 1 + 1 + 2
    with pytest.raises(DataError, match=r"too large: .*more than 4 ancestors.*Remove some rows"):
        Hierarchy(TREE.parents)


def test_a_hierarchy_survives_plain_values():
    flags = Hierarchy(TREE.parents, closes_labels=True, keeps_closed=True)
    assert Hierarchy.from_dict(flags.as_dict()) == flags
    assert Hierarchy.from_dict(None) is None
    for damaged in ({}, {**flags.as_dict(), "parents": 3}, {**flags.as_dict(), "keeps_closed": 1}):
        with pytest.raises(ValueError, match="damaged"):
            Hierarchy.from_dict(damaged)


def test_open_sets_are_counted_with_an_example():
    sets = [["a"], ["b"], ["a", "b", "d"], ["a", "d"], []]
    assert list_open(TREE, sets, {"a", "b", "d"}) == [("b", "a"), ("d", "b")]  # without c and e
    lines = describe_fit(TREE, sets)
    assert "'c'" in lines[0]
    assert "40.0%" in lines[1]
    assert "'b' without 'a'" in lines[1]
    assert "--close-labels" in lines[1]
    assert "closed upwards" in describe_fit(TREE, [["a", "b"], ["a"]])[-1]


@pytest.mark.parametrize("shape", DEEP)
def test_the_documents_of_a_deep_hierarchy_are_closed_and_compared_at_once(shape):
    start = time.perf_counter()
    tree = Hierarchy(DEEP[shape])
    sets = [tree.close([name]) for name in tree.labels] * 10
    assert all(tree.close(each) == each for each in sets)
    assert "closed upwards" in describe_fit(tree, sets)[-1]
    assert time.perf_counter() - start < 5  # compared with all ancestors: more than a minute


def test_a_label_is_compared_with_the_ancestors_that_the_documents_have():
    tree = Hierarchy(DEEP["chain"])
    assert tree.nearest(["9", "5", "2", "x"]) == {"9": ("5",), "5": ("2",), "2": ()}
    assert list_open(tree, [["9", "5"], ["9", "5", "2"]], ["9", "5", "2"]) == [("5", "2")]


def test_a_hierarchy_of_other_labels_is_refused():
    with pytest.raises(DataError, match=r"none of the 1 labels.*'sport'"):
        describe_fit(TREE, [["sport"]])
    with pytest.raises(DataError, match="none of the 0 labels"):
        describe_fit(TREE, [[]])


def test_hierarchical_measures_are_those_of_the_definition():
    """Kiritchenko et al.: sets with their ancestors, all documents together."""
    random = np.random.default_rng(0)
    above = {"a": "", "b": "a", "c": "a", "d": "bea", "e": "", "f": ""}

    def draw():
        return [[x for x in "abcdef" if random.random() < 0.3] for _ in range(40)]

    truth, predicted = draw(), draw()
    closed = [
        [set(row) | set("".join(above[x] for x in row)) for row in sets]
        for sets in (truth, predicted)
    ]
    pairs = list(zip(*closed, strict=True))
    n_both = sum(len(t & p) for t, p in pairs)
    n_true, n_predicted = sum(len(t) for t, _ in pairs), sum(len(p) for _, p in pairs)
    precision, recall = n_both / n_predicted, n_both / n_true
    of_documents = [2 * len(t & p) / (len(t) + len(p)) if t or p else 1 for t, p in pairs]
    found = score_in_hierarchy(TREE, truth, predicted)
    assert found.hierarchical_precision == pytest.approx(precision)
    assert found.hierarchical_recall == pytest.approx(recall)
    assert found.hierarchical_f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert found.hierarchical_instance_f1 == pytest.approx(np.mean(of_documents))


def test_nothing_predicted_scores_nothing():
    found = score_in_hierarchy(TREE, [["a"], ["d"]], [[], []])
    assert found.hierarchical_f1 == found.hierarchical_recall == 0
    assert score_in_hierarchy(TREE, [[], []], [[], []]).hierarchical_f1 == 1
