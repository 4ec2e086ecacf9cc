import string
from functools import partial
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setrnn.config import TextSettings
from setrnn.data import cache
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.errors import DataError

EVERY_WORD = TextSettings(min_count=1, stop_words="none")


def prepared_from(folder, text_settings=EVERY_WORD, **splits):
    streams = {name: partial(iter, examples) for name, examples in splits.items()}
    return prepare(streams, folder, "small", text_settings, {})


def documents(split):
    """All that a split holds, as plain lists."""
    return (
        split.ids(0, len(split)),
        [row.tolist() for row in split.tokens],
        [row.tolist() for row in split.labels],
    )


def examples_with(texts):
    return [Example(str(i), text) for i, text in enumerate(texts)]


def distinct_words(n):
    """Words that differ from each other, in no order of the alphabet."""
    every = ["".join(letters) for letters in product(string.ascii_lowercase, repeat=3)]
    return [every[i * 7919 % len(every)] + "q" for i in range(n)]


def test_frequent_features_are_tokens_and_rare_ones_are_not(tmp_path):
    train = [
        Example("1", "a", (), ("often", "once")),
        Example("2", "b", (), ("often", "twice")),
        Example("3", "c", (), ("often", "twice")),
    ]
    prepared = prepared_from(tmp_path / "p", TextSettings(min_count=2), train=train)
    features = [token for token in prepared.encoder.tokens if token.startswith("[feature]")]
    assert features == ["[feature] often", "[feature] twice"]
    one = TextSettings(min_count=1, max_features=1)
    prepared = prepared_from(tmp_path / "q", one, train=train)
    assert [token for token in prepared.encoder.tokens if "[feature]" in token] == [
        "[feature] often"
    ]


@pytest.mark.parametrize("batch", [1, 299, 300])
def test_where_batches_end_changes_nothing(
    small_prepared, small_examples, tmp_path, monkeypatch, batch
):
    monkeypatch.setattr(cache, "BATCH", batch)
    again = prepared_from(tmp_path / "p", TextSettings(), **small_examples)
    for file in small_prepared.folder.rglob("*"):
        if file.suffix == ".bin" or file.name in ("tokenizer.json", "labels.json"):
            other = again.folder / file.relative_to(small_prepared.folder)
            assert other.read_bytes() == file.read_bytes(), file.name


def test_labels_that_train_never_had_follow_the_others(tmp_path):
    prepared = prepared_from(
        tmp_path / "p",
        train=[Example("1", "x", ("b", "a")), Example("2", "y", ("b",))],
        valid=[Example("3", "x", ("z", "a"))],
        test=[Example("4", "x", ("c", "b", "z"))],
    )
    assert prepared.labels.names == ("b", "a")
    assert prepared.unseen_labels == ["z", "c"]
    assert documents(prepared.split("valid"))[2] == [[1, 2]]
    assert documents(prepared.split("test"))[2] == [[0, 2, 3]]


@pytest.mark.parametrize("limit", [1, 3, 8, 50])
def test_the_vocabulary_sample_has_the_size_asked_for_and_no_order(tmp_path, limit):
    """Each document has a word of its own: the vocabulary tells which were read for it."""
    text_settings = TextSettings(min_count=1, vocabulary_documents=limit, stop_words="none")
    for n_documents in (1, 8, 9, 101):
        train = examples_with(distinct_words(n_documents))
        prepared = prepared_from(tmp_path / "p", text_settings, train=train)
        taken = prepared.encoder.tokens[3:]
        assert len(taken) == min(limit, n_documents)
        turned = prepared_from(tmp_path / "turned", text_settings, train=train[::-1])
        assert turned.encoder.tokens[3:] == taken


@pytest.mark.parametrize("splits", [{"test": []}, {"valid": [], "test": []}, {}])
def test_without_train_nothing_is_prepared(tmp_path, splits):
    with pytest.raises(DataError, match="no 'train' part"):
        prepared_from(tmp_path / "p", **splits)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_something_else_is_not_replaced(tmp_path):
    precious = tmp_path / "p" / "thesis.txt"
    precious.parent.mkdir()
    precious.write_text("years of work")
    with pytest.raises(DataError):
        prepared_from(tmp_path / "p", train=examples_with(["rain"]))
    assert precious.read_text() == "years of work"


text = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
examples = st.lists(
    st.builds(
        Example,
        text,
        text,
        st.lists(text, max_size=3).map(tuple),
        st.lists(text, max_size=2).map(tuple),
    ),
    max_size=6,
)


@given(examples, examples)
@settings(deadline=None, max_examples=15)
def test_any_documents_come_back(tmp_path_factory, train, test):
    prepared = prepared_from(tmp_path_factory.mktemp("any") / "p", train=train, test=test)
    names = [*prepared.labels.names, *prepared.unseen_labels]
    assert len(set(names)) == len(names)
    for split, given_ in (("train", train), ("test", test)):
        ids, tokens, labels = documents(prepared.split(split))
        assert ids == [each.id for each in given_]
        assert [{names[i] for i in row} for row in labels] == [set(each.labels) for each in given_]
        expected = prepared.encoder.encode(
            [each.text for each in given_], [each.features for each in given_]
        )
        assert tokens == [row.tolist() for row in expected]
        assert all(0 < token < prepared.encoder.n_tokens for row in tokens for token in row)
