import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.data.example import Example, KnownLabels
from setrnn.errors import DataError

names = st.lists(st.sampled_from("abcde"), max_size=12)


@given(names, names)
def test_repeats_are_merged_and_the_first_order_is_kept(labels, features):
    example = Example("1", "text", labels, features)
    assert set(example.labels) == set(labels)
    assert set(example.features) == set(features)
    for found, given_ in ((example.labels, labels), (example.features, features)):
        assert isinstance(found, tuple)
        assert [given_.index(name) for name in found] == sorted({given_.index(n) for n in given_})


@pytest.mark.parametrize("name", ["labels", "features"])
@pytest.mark.parametrize("value", ["sport", ""])
def test_a_lone_string_is_refused(name, value):
    with pytest.raises(DataError, match=name):
        Example("1", "text", **{name: value})


def test_known_labels_are_merged_and_a_lone_string_is_refused():
    assert KnownLabels(["a", "b", "a"], iter("cc")) == KnownLabels(("a", "b"), ("c",))
    for name in ("present", "absent"):
        with pytest.raises(DataError, match=name):
            KnownLabels(**{name: "sport"})


def test_empty_text_and_empty_set_are_legal():
    example = Example("1", "")
    assert example.labels == ()
    assert example.features == ()


def test_any_iterable_of_strings_will_do():
    assert Example("1", "", iter(["a", "b", "a"])).labels == ("a", "b")
    assert Example("1", "", ["a"], features=iter(["x", "x"])).features == ("x",)
    assert Example("1", "", ["a"], features=[]).features == ()


def test_examples_of_the_same_content_are_equal_and_hash_alike():
    first, second = Example("1", "t", ["a", "a"], ["x"]), Example("1", "t", ("a",), ("x",))
    assert first == second
    assert hash(first) == hash(second)


def test_an_example_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Example("1", "t").text = "u"
