from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setrnn.cli.data import show_parts
from setrnn.data.example import Example
from setrnn.data.statistics import dataset_statistics, find_twins

examples_of_a_split = st.lists(
    st.builds(
        Example,
        id=st.sampled_from("123456"),
        text=st.text("aB \n", max_size=5),
        labels=st.lists(st.sampled_from("xyz"), max_size=3),
    ),
    max_size=12,
)


@pytest.fixture
def statistics():
    return dataset_statistics(
        {
            "train": [
                Example("1", "One  two three", ("a", "b")),
                Example("2", "one TWO\nthree", ("b", "a")),
                Example("2", "other words", ("a",), features=("tag",)),
                Example("4", " ", ()),
            ],
            "valid": [Example("5", "new words here now", ("b",))],
            "test": [
                Example("6", "one two three", ("a", "c")),
                Example("7", "one two three", ("c",)),
                Example("8", "", ("a", "b")),
            ],
        }
    )


def words_of(example):
    return tuple(example.text.lower().split())


def test_split_is_counted_as_by_hand(statistics):
    train = statistics.splits["train"]
    assert (train.n_documents, train.n_labels) == (4, 2)
    assert train.mean_set_size == pytest.approx(5 / 4)
    assert train.max_set_size == 2
    assert train.set_sizes == {0: 1, 1: 1, 2: 2}
    assert list(train.label_frequencies.items()) == [("a", 3), ("b", 2)]
    assert train.n_empty_texts == train.n_empty_label_sets == 1
    assert train.n_documents_with_features == 1
    assert (train.lengths.mean, train.lengths.max) == (2.0, 3)


@given(examples_of_a_split, examples_of_a_split)
@settings(deadline=None)
def test_counts_equal_those_of_sets_held_in_memory(train, test):
    statistics = dataset_statistics({"train": train, "test": test})
    for name, examples in (("train", train), ("test", test)):
        split = statistics.splits[name]
        texts = [words_of(example) for example in examples if words_of(example)]
        assert split.n_repeated_texts == len(texts) - len(set(texts))
        assert split.n_repeated_ids == len(examples) - len({example.id for example in examples})
        assert split.n_label_sets == len({frozenset(example.labels) for example in examples})
        assert split.label_frequencies == Counter(
            label for example in examples for label in example.labels
        )
    known_sets = {frozenset(example.labels) for example in train}
    unseen = [example for example in test if frozenset(example.labels) not in known_sets]
    found = statistics.splits["test"]
    assert found.unseen_share == len(unseen) / max(len(test), 1)
    train_texts = {words_of(e) for e in train} - {()}
    n_shared = sum(words_of(example) in train_texts for example in test)
    assert found.n_shared_texts == {"train": n_shared}


def test_the_language_is_that_of_train_or_of_the_first_split():
    german = [Example(str(n), "Der Hund und die Katze sind nicht in dem Haus.") for n in range(9)]
    english = [Example(str(n), "The dog and the cat are not in the house.") for n in range(9)]
    assert dataset_statistics({"a": english, "train": german}).language.language == "german"
    assert dataset_statistics({"a": english, "b": german}).language.language == "english"
    assert dataset_statistics({}).language.language == "english"


def test_warnings_name_what_to_act_on(statistics):
    assert [warning.split(",")[0].split(":")[0] for warning in statistics.warnings()] == [
        "train has 1 document without text",
        "train has 1 document without labels",
        "train repeats its own texts in 1 document",
        "train repeats its own ids in 1 document.",
        "test repeats train in 2 documents",
        "test has 1 label that training lacks (2 occurrences)",
        "test has 1 document without text",
        "test repeats its own texts in 1 document",
    ]


def test_names_that_look_like_markup_are_shown_as_they_are(capsys):
    show_parts(dataset_statistics({"[/x]": [Example("1", "text", ("a",))]}))
    assert "[/x]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("label", "twin"),
    [
        ("Drama", "Dramas"),
        ("comedy", "Comedies"),
        ("Movie", "Movies"),
        ("Sci-Fi & Fantasy", "sci fi and fantasy"),
        ("SciFi", "Sci-Fi"),
        ("Café Culture", "Cafe culture"),
        ("Children's", "Children"),
        ("Children\u2019s", "Childrens"),
        ("Women's fiction", "Women: Fiction"),
    ],
)
def test_spellings_of_one_label_are_twins(label, twin):
    assert find_twins({label: 1, twin: 9, "Other things": 3}) == {label: twin}


@pytest.mark.parametrize("typo", ["Documentries", "Doucmentaries", "Documentarries", "Dokumentary"])
def test_a_rare_misspelling_is_a_twin_of_a_frequent_label(typo):
    assert find_twins({"Documentaries": 10, typo: 2, "Movies": 9}) == {typo: "Documentaries"}
    assert find_twins({"Documentaries": 9, typo: 2}) == {}, "too frequent for a mistake"
    assert find_twins({"International Movies": 10, "Internatonal movie": 1}) == {
        "Internatonal movie": "International Movies"
    }


@pytest.mark.parametrize(
    "rare",
    ["immigration", "Emigrants", "emgirations 2", "Migration law", "emigatoin"],
)
def test_names_that_differ_by_more_than_a_letter_are_not_twins(rare):
    assert find_twins({"emigration": 99, rare: 1}) == {}
    assert find_twins({"Poland": 99, "Polend": 1}) == {}, "short names may be anything"


@pytest.mark.parametrize(
    "labels",
    [
        ("cs.AI", "cs.AR"),
        ("1980s", "1990s"),
        ("C", "C++"),
        ("lang:c", "lang:c++", "lang:c#"),
        ("Visual C", "Visual C++"),
        ("Web C", "Web C#"),
        ("News", "New"),
        ("a b", "ab"),
    ],
)
def test_different_labels_are_not_twins(labels):
    assert find_twins(dict.fromkeys(labels, 1)) == {}
