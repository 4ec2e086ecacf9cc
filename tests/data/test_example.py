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


@pytest.mark.parametrize("value", ["sport", ""])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda **values: Example("1", "text", **values), "labels"),
        (lambda **values: Example("1", "text", **values), "features"),
        (KnownLabels, "present"),
        (KnownLabels, "absent"),
    ],
)
def test_a_lone_string_is_refused(make, name, value):
    with pytest.raises(DataError, match=name):
        make(**{name: value})
