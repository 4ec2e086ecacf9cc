"""What a person does is counted as the page takes it."""

import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from setrnn.data.labels import LabelVocabulary
from setrnn.serve.registry import ServedModel

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "tagging_effort.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
effort = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(effort)

COUNTS = {"sport": 9, "space": 8, "palm-oil": 7, "sports-car": 6, "oil": 5, "Árbol": 4, "tea": 3}
VOCABULARY = LabelVocabulary.from_counts(COUNTS)
TRUTHS = [
    frozenset(each) for each in ((), ("sport",), ("space", "tea"), ("oil", "sport", "palm-oil"))
]
FIRST, SECOND = effort.ASKS


class FakeModel:
    """Says what it is told to; `says` takes the document's number and what is known of it."""

    labels = VOCABULARY.index

    def __init__(self, says, n_documents, max_labels=None):
        self.says, self.n_documents, self.max_labels = says, n_documents, max_labels
        self.asked = []

    def predict(self):
        nothing = effort.KnownLabels()
        return [self.says(document, nothing) for document in range(self.n_documents)]

    def complete(self, documents, known):
        self.asked.extend(known)
        return [self.says(*each) for each in zip(documents, known, strict=True)]


@pytest.fixture(scope="module")
def search():
    return effort.Search(SimpleNamespace(labels=VOCABULARY))


def counts(says, truths, search, max_labels=None):
    model = FakeModel(says, len(truths), max_labels)
    ways = effort.measure(model, truths, search, [FIRST, SECOND])
    return {
        name: [(each.keys, each.clicks, each.touched) for each in people]
        for name, people in ways.items()
    }


def test_a_perfect_model_needs_one_key_a_document(search):
    found = counts(lambda document, known: effort.Answer(tuple(TRUTHS[document])), TRUTHS, search)
    by_hand = found.pop("by hand")
    assert all(each == [(1, 0, 0)] * len(TRUTHS) for each in found.values())
    assert [touched for _, _, touched in by_hand] == [len(truth) for truth in TRUTHS]


def test_a_model_that_says_nothing_needs_as_much_as_by_hand(search):
    found = counts(lambda document, known: effort.Answer(known.present), TRUTHS, search)
    assert all(each == found["by hand"] for each in found.values())


def test_a_search_is_typed_until_the_label_is_the_first_row_and_no_longer(search):
    served = ServedModel("", "", SimpleNamespace(labels=VOCABULARY))
    for label in ("sport", "space", "Árbol", "tea"):  # of one word
        n_typed = search.n_keys(label) - len(["Enter"])
        rows = [served.find_labels(label[:length]) for length in range(1, n_typed + 1)]
        is_first = [row[0] == VOCABULARY.index[label] for row in rows]
        assert is_first == [False] * (n_typed - 1) + [True], label


@pytest.mark.parametrize(
    ("label", "keys"),
    [
        ("sport", ["s", "Enter"]),
        ("space", ["s", "p", "a", "Enter"]),
        ("sports-car", ["c", "Enter"]),  # by its second word
        ("oil", ["o", "i", "l", "Down", "Enter"]),  # "palm-oil" ends with it too, and is used more
        ("new one", [*"new one", "Enter"]),
        ("spa", [*"spa", "Up", "Enter"]),  # new, and "space" is before it
    ],
)
def test_keys_of_a_search_are_those_the_page_wants(search, label, keys):
    assert search.n_keys(label) == len(keys)


def test_the_field_keeps_the_focus_between_searches_and_is_left_before_other_keys(search):
    by_hand = counts(lambda *_: effort.Answer(()), [frozenset({"sport", "tea"})], search)["by hand"]
    keys = ["/", "s", "Enter", "t", "Enter", "Escape", "d"]
    assert by_hand == [(len(keys), 0, 2)]


def test_a_wrong_label_takes_a_click_and_a_listed_one_too(search):
    says = effort.Answer(("tea",), [("space", 0.4)])
    found = counts(lambda *_: says, [frozenset({"space"})], search)
    assert found["predicted set"] == [(len(["/", *"spa", "Enter", "Escape", "d"]), 1, 2)]
    assert found["predicted set and list"] == [(1, 2, 2)]


def test_one_answer_can_bring_the_rest(search):
    truth = frozenset({"sport", "tea", "space"})

    def says(document, known):
        if "tea" in known.present:
            return effort.Answer(tuple(truth))
        return effort.Answer(("sport",), [("sport", 0.9), ("tea", 0.4)])

    found = counts(says, [truth], search)
    assert found[f"completion, {SECOND}"] == [(2, 0, 1)]  # y d
    assert found[f"completion, {FIRST}"] == [(1, 1, 1)]  # "tea" clicked in the list, d
    assert found[f"answers only, {SECOND}"] == [(2, 0, 1)]
    assert found[f"answers only, {FIRST}"] == [(3, 0, 2)]  # y for "sport", y, d


def test_adding_first_is_spared_one_wrong_set_after_the_other(search):
    def says(document, known):  # the next label of all, while nothing is known to be right
        return effort.Answer(known.present or (VOCABULARY.names[len(known.absent)],))

    found = counts(says, [frozenset({"tea"})], search)
    keys = ["/", "t", "Enter", "Escape", "d"]
    assert found[f"adding first, {FIRST}"] == [(len(keys), 0, 1)]
    n_wrong = VOCABULARY.index["tea"]
    assert found[f"completion, {FIRST}"] == [(1, n_wrong, n_wrong)]  # until "tea" comes by itself


def test_answers_that_mend_nothing_end(search):
    idle = [(name, 0.9) for name in VOCABULARY.names if name != "tea"]
    found = counts(
        lambda document, known: effort.Answer(known.present, idle), [frozenset({"tea"})], search
    )
    keys = ["n"] * effort.PATIENCE + ["/", "t", "Enter", "Escape", "d"]
    assert found[f"answers only, {FIRST}"] == [(len(keys), 0, effort.PATIENCE + 1)]


def test_the_model_is_not_asked_about_labels_it_does_not_have(search):
    truths = [frozenset({"new one", "tea"}), frozenset({"new one"})]
    model = FakeModel(lambda document, known: effort.Answer(known.present), len(truths))
    effort.measure(model, truths, search, [FIRST])
    assert {each.present for each in model.asked} == {("tea",)}


def test_more_labels_than_the_model_may_be_told_are_decided_all_the_same(search):
    def says(document, known):
        assert len(known.present) <= 1
        return effort.Answer(known.present)

    found = counts(says, TRUTHS, search, max_labels=1)
    assert all(each == found["by hand"] for each in found.values())


def test_rounds_end_and_the_rest_is_done_by_hand(search, monkeypatch):
    def always_wrong(document, known):
        return effort.Answer((*known.present, VOCABULARY.names[len(known.absent)]))

    monkeypatch.setattr(effort, "MOST_ROUNDS", 2)
    found = counts(always_wrong, [frozenset()], search)
    assert found[f"completion, {FIRST}"] == [(1, 3, 3)]


def test_ways_of_asking_differ():
    rows = [("a", 0.9), ("b", 0.6), ("c", 0.45), ("d", 0.01)]
    assert [ask(rows) for ask in effort.ASKS.values()] == ["a", "c"]


def test_documents_by_their_tokens_are_answered_as_by_their_texts(
    taggers, small_prepared, small_examples
):
    tagger = taggers["br"]
    texts = [each.text for each in small_examples["test"]]
    features = [each.features for each in small_examples["test"]]
    model = effort.TokenModel(tagger, small_prepared.split("test").tokens)
    predicted = tagger.tag(texts, features=features)
    marginals = tagger.predict_proba(texts, features)
    for answer, prediction, probs in zip(model.predict(), predicted, marginals, strict=True):
        assert answer.labels == prediction.labels
        assert answer.rows[0][0] == tagger.labels.names[int(probs.argmax())]
    present = tagger.labels.names[3:4]
    of_two = [features[7], features[2]]
    completed = tagger.complete([texts[7], texts[2]], [present] * 2, features=of_two)
    answers = model.complete([7, 2], [effort.KnownLabels(present)] * 2)
    assert [each.labels for each in answers] == [each.labels for each in completed]


def test_a_ratio_is_of_means_and_its_interval_holds_it():
    steps = np.arange(1.0, 50.0)
    assert effort.ratio(3 * steps, steps, seed=0) == "3.00 (3.00-3.00)"
    value, low, high = map(float, re.findall(r"[\d.]+", effort.ratio(steps, steps[::-1], seed=0)))
    assert low < value == 1 < high
