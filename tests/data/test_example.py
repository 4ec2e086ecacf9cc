import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.data.example import Example, KnownLabels, hash_texts, join_hashes
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


rng = np.random.default_rng(0)
DOCUMENTS = [" ".join(map(str, rng.integers(0, 50, rng.integers(1, 9)))) for _ in range(3_000)]
TRAINED, NEW = DOCUMENTS[:2_000], DOCUMENTS[1_500:]


def test_documents_are_recognised_one_by_one():
    trained = join_hashes([hash_texts(part) for part in (["", *TRAINED[:900]], TRAINED[900:])])
    texts = ["", " \n", *NEW]  # a text without words is never recognised
    found = np.isin(hash_texts(texts), trained)
    assert found.tolist() == [each in set(TRAINED) for each in texts]
    assert (np.diff(trained) > 0).all()


def test_texts_differ_by_numbers_and_by_words_that_no_model_knows():
    """Hashes of token ids took all of these for one: a number is one token, as an unknown word."""
    texts = ["Invoice 17 of Zqxwv", "Invoice 18 of Zqxwv", "Invoice 17 of Vwxqz"]
    assert len(set(hash_texts(texts).tolist())) == 3
    assert hash_texts(["invoice  17 OF zqxwv\n"]) == hash_texts(texts[:1])
