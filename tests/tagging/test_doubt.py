"""Wrong labels are found by systems that did not see them; suggestions follow Bayes' rule."""

import csv
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import setrnn
from setrnn.config import TextSettings
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.data.labels import LabelVocabulary
from setrnn.data.read import BadRows
from setrnn.errors import ConfigError, DataError
from setrnn.tagging.doubt import (
    ERROR_RATE,
    DoubtfulDocument,
    Judges,
    count_votes,
    describe,
    list_alternatives,
)

WRONG = 15  # documents
ALL_SETS = [frozenset(each) for size in range(5) for each in combinations(range(4), size)]


@pytest.fixture(scope="module")
def noisy(small_examples):
    """Documents, of which the first ones have the labels of others: no label is shared."""
    clean = small_examples["train"]
    changed = []
    for row, each in enumerate(clean[:WRONG]):
        others = (one for one in clean[row + 1 :] if not {*one.labels} & {*each.labels})
        changed.append(replace(each, labels=next(others).labels[:1] + each.labels[1:]))
    return [*changed, *clean[WRONG:]]


@pytest.fixture(scope="module")
def doubtful(noisy):
    return setrnn.doubt(noisy, folds=3)


def log_prior_by_definition(true, given, shares):
    """Log p(given | true set): each kind of error has a third of the probability of errors."""
    missing, extra = true - given, given - true
    if true == given:
        return np.log(1 - ERROR_RATE)
    if n_errors(true, given) > 1:
        return -np.inf
    drawn = np.prod([shares[label] for label in extra])
    left = len(true) ** len(missing)
    return np.log(ERROR_RATE / 3 * drawn / left)


def n_errors(true, given):
    return max(len(true - given), len(given - true))


def padded(label_sets):
    return np.array([[*sorted(each), *[-1] * (4 - len(each))] for each in label_sets], np.int32)


@pytest.mark.parametrize("given", ALL_SETS, ids=str)
def test_alternatives_are_all_sets_at_one_error_with_their_probabilities(given):
    random = np.random.default_rng(len(given))
    shares = random.dirichlet(np.ones(4))
    sets, log_prior = list_alternatives(padded([given]), random.random((1, 4)), np.log(shares))
    names = [frozenset(each[each >= 0].tolist()) for each in sets[0]]
    found = [
        (name, value) for name, value in zip(names, log_prior[0], strict=True) if value > -np.inf
    ]
    assert names[0] == given
    assert len(dict(found)) == len(found)
    assert dict(found) == pytest.approx(
        {
            each: log_prior_by_definition(each, given, shares)
            for each in ALL_SETS
            if n_errors(each, given) <= 1
        }
    )


def test_the_votes_are_the_mean_of_the_posteriors():
    votes = np.log([[[0.5, 0.3, 0.2]], [[0.1, 0.9, 1e-300]]])
    log_prior = np.log([[0.5, 0.25, 0.25]])
    posteriors = np.array([[0.25, 0.075, 0.05], [0.05, 0.225, 0]])
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(count_votes(votes, log_prior)[0], posteriors.mean(axis=0))


def test_a_set_that_no_system_finds_possible_is_judged_by_the_prior():
    found = count_votes(np.full((1, 1, 2), -np.inf), np.log([[0.5, 0.1]]))
    np.testing.assert_allclose(found, [[5 / 6, 1 / 6]])


def test_labels_to_change_have_the_probability_of_the_sets_that_change_them():
    labels = LabelVocabulary(("a", "b", "c"), (3, 2, 1))
    sets = np.array([[0, -1], [-1, -1], [0, 1], [1, -1], [2, -1]], dtype=np.int32)
    found = describe(
        Example("1", "text", ("a",)), labels, sets, np.array([0.1, 0.1, 0.2, 0.57, 0.03])
    )
    assert found.score == pytest.approx(0.9)
    assert (found.labels, found.probability) == (("b",), 0.57)
    assert found.to_add == pytest.approx({"b": 0.77})
    assert found.to_remove == pytest.approx({"a": 0.7})


def test_injected_errors_come_first(noisy, doubtful):
    assert len(doubtful) == len(noisy)
    wrong = {each.id for each in noisy[:WRONG]}
    hits = np.array([each.example.id in wrong for each in doubtful])
    assert hits[:WRONG].mean() > 0.5
    assert hits[: 2 * WRONG].sum() > 0.7 * WRONG
    scores = [each.score for each in doubtful]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] <= scores[0] <= 1


def test_most_suggestions_for_injected_errors_undo_them(noisy, doubtful, small_examples):
    clean = {each.id: {*each.labels} for each in small_examples["train"]}
    wrong = {each.id: {*each.labels} for each in noisy[:WRONG]}
    added = removed = 0
    for each in doubtful:
        if (name := each.example.id) in wrong:
            added += bool({*each.to_add} & (clean[name] - wrong[name]))
            removed += next(iter(each.to_remove), "") in wrong[name] - clean[name]
        assert not {*each.to_add} & {*each.example.labels}
        assert {*each.to_remove} <= {*each.example.labels}
    assert removed > 0.6 * WRONG
    assert added > 0.4 * WRONG


def test_words_of_the_text_speak_for_labels_to_add(doubtful):
    some = [each for each in doubtful[:WRONG] if any(each.words.get(one) for one in each.to_add)]
    assert len(some) > WRONG / 2
    for each in some:
        words = {word for found in each.words.values() for word in found}
        text = each.example.text.lower()
        assert all(word in text or word in each.example.features for word in words)


def test_the_labels_of_a_document_do_not_judge_it(small_examples, tmp_path):
    """Its own label probabilities stay, whatever labels it was given."""
    examples = small_examples["train"][:120]
    other = replace(examples[3], labels=examples[4].labels)
    assert other.labels != examples[3].labels
    found = []
    for number, each in enumerate((examples[3], other)):
        documents = [*examples[:3], each, *examples[4:]]
        place = tmp_path / str(number)
        prepared = prepare({"train": lambda d=documents: d}, place, "data", TextSettings(), {})
        judges = Judges.train(prepared, ["br"], 3)
        (batch,) = judges.find_alternatives(np.array([3]))
        probs = dict(zip(prepared.labels.names, batch.marginals[0, 0].tolist(), strict=True))
        found.append(probs)
    assert found[0] == pytest.approx(found[1], rel=0.02, abs=1e-4)


def test_the_first_documents_are_the_answer_for_fewer(noisy, doubtful):
    few = setrnn.doubt(noisy, ["br", "br-support", "pcc"], folds=3, top=4)
    assert few == doubtful[:4]


def test_documents_with_unknown_labels_are_not_judged(small_examples, notes):
    examples = small_examples["train"][:60]
    some = [replace(examples[0], complete=False), *examples[1:]]
    found = setrnn.doubt(some, "br", folds=2)
    assert examples[0].id not in {each.example.id for each in found}
    assert len(found) == 59
    assert "1 documents with labels that are not known" in notes.texts[-1]


def test_what_cannot_be_doubted_is_refused(small_examples, small_prepared):
    examples = small_examples["train"][:20]
    with pytest.raises(ConfigError, match="'set-rnn'"):
        setrnn.doubt(examples, "set-rnn")
    with pytest.raises(ConfigError, match="pcc"):
        setrnn.doubt(examples, [])
    for wrong in ({"folds": 1}, {"top": 0}):
        with pytest.raises(ConfigError, match="at least"):
            setrnn.doubt(examples, "br", **wrong)
    with pytest.raises(DataError, match="different texts"):
        setrnn.doubt([replace(each, text="same") for each in examples], "br")
    with pytest.raises(DataError, match="label"):
        setrnn.doubt([replace(each, labels=()) for each in examples], "br")
    with pytest.raises(DataError, match="prepared"):
        setrnn.doubt(small_prepared.folder, "br")


def test_a_written_table_is_data_again(doubtful, tmp_path):
    file = tmp_path / "doubts.csv"
    setrnn.write_doubts(doubtful, file)
    options = setrnn.ReadOptions(unlabelled_rows="empty")
    read = setrnn.open_dataset(file, options).require("train").read(BadRows())
    assert [(each.id, {*each.labels}, {*each.features}) for each in read] == [
        (each.example.id, {*each.example.labels}, {*each.example.features}) for each in doubtful
    ]
    with file.open(newline="") as stream:
        first = next(csv.DictReader(stream))
    assert first["probable_labels"] == ";".join(doubtful[0].labels)
    assert float(first["score"]) == pytest.approx(doubtful[0].score, abs=1e-4)
    assert first["remove"].split(";")[0] == next(iter(doubtful[0].to_remove))


def test_a_column_of_the_document_keeps_its_name_and_its_cell(tmp_path):
    columns = {"id": "7", "text": "=1+1", "labels": "a;b", "score": "5"}
    example = Example("7", "=1+1", ("a", "b"), columns=columns)
    file = tmp_path / "doubts.csv"
    setrnn.write_doubts([DoubtfulDocument(example, 0.5, ("a",), 0.4, {}, {"b": 0.4})], file)
    with file.open(newline="") as stream:
        (row,) = csv.DictReader(stream)
    assert (row["text"], row["labels"], row["score"]) == ("'=1+1", "a;b", "5")
    assert (row["predicted_score"], row["remove"]) == ("0.5", "b")
