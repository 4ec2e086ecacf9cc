"""The scikit-learn estimator with a hierarchy of labels, and with labels that are not known."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import sklearn
from quick_classifiers import hide
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import setrnn
from setrnn.data import newsroom
from setrnn.data.read import read_hierarchy, write_examples
from setrnn.errors import DataError
from setrnn.tagging.estimator import SetRNNClassifier
from setrnn.tagging.evaluate import evaluate
from setrnn.tagging.learn.train import train
from small_taggers import SMALL_OVERRIDES

TREE = read_hierarchy("newsroom")
EXAMPLES = list(islice(newsroom.examples("train"), 160))
TEXTS = [example.text for example in EXAMPLES]
LABEL_SETS = [example.labels for example in EXAMPLES]
FEATURES = [example.features for example in EXAMPLES]
NEW = list(islice(newsroom.examples("test"), 40))
NEW_TEXTS = [example.text for example in NEW]
NETWORK = {"settings": [*SMALL_OVERRIDES, "training.epochs=1"], "device": "cpu"}


def lowest(labels):
    above = {each for label in labels for each in TREE.ancestors(label)}
    return tuple(label for label in labels if label not in above)


LEAVES = [lowest(labels) for labels in LABEL_SETS]
HIDDEN = [hide(example, number) for number, example in enumerate(EXAMPLES)]
SAID = {
    "unknown": [example.unknown for example in HIDDEN],
    "complete": [example.complete for example in HIDDEN],
}
GIVEN = [example.labels for example in HIDDEN]


def is_closed(predictions):
    sets = [each.labels for one in predictions for each in (one, *one.alternatives)]
    return all(map(TREE.is_closed, sets))


def assert_same_model(classifier, tagger):
    arrays, expected = classifier.tagger_.system.arrays(), tagger.system.arrays()
    assert arrays.keys() == expected.keys()
    for name, each in arrays.items():
        np.testing.assert_array_equal(each, expected[name])
    assert classifier.tagger_.hierarchy == tagger.hierarchy
    own, other = classifier.predict_sets(NEW_TEXTS), tagger.tag(NEW_TEXTS, top=3)
    assert [each.labels for each in own] == [each.labels for each in other]


@pytest.mark.parametrize("method", ["br", "set-rnn-exact"])
def test_with_a_hierarchy_the_model_is_that_of_train(method, tmp_path):
    documents = [
        replace(example, labels=labels) for example, labels in zip(EXAMPLES, LEAVES, strict=True)
    ]
    write_examples(documents, tmp_path / "leaves.jsonl")
    options = {"hierarchy": TREE, "close_labels": True, **NETWORK}
    tagger = train(tmp_path / "leaves.jsonl", method, cut_valid=False, **options)
    classifier = SetRNNClassifier(method, **options).fit(TEXTS, LEAVES, FEATURES)
    assert_same_model(classifier, tagger)
    assert is_closed(classifier.predict_sets(NEW_TEXTS))


@pytest.mark.parametrize("method", ["br", "set-rnn-exact"])
def test_with_unknown_labels_the_model_is_that_of_train(method, tmp_path):
    write_examples(HIDDEN, tmp_path / "hidden.jsonl")
    tagger = train(tmp_path / "hidden.jsonl", method, cut_valid=False, **NETWORK)
    classifier = SetRNNClassifier(method, **NETWORK).fit(TEXTS, GIVEN, FEATURES, **SAID)
    assert_same_model(classifier, tagger)
    taken_as_absent = SetRNNClassifier(method, **NETWORK).fit(TEXTS, GIVEN, FEATURES)
    assert (classifier.predict_proba(NEW_TEXTS) != taken_as_absent.predict_proba(NEW_TEXTS)).any()


def test_closed_labels_are_classes_and_true_labels_are_closed_when_scored():
    closing = SetRNNClassifier("br", hierarchy=TREE, close_labels=True).fit(TEXTS, LEAVES)
    assert set(closing.classes_) == set().union(*map(TREE.close, LEAVES))
    whole = SetRNNClassifier("br", hierarchy=TREE).fit(TEXTS, [*map(TREE.close, LEAVES)])
    truth = [TREE.close(example.labels) for example in NEW]
    leaves = [lowest(example.labels) for example in NEW]
    assert closing.score(NEW_TEXTS, leaves) == whole.score(NEW_TEXTS, truth)
    as_last_step = Pipeline([("same", FunctionTransformer()), ("tag", closing)])
    for estimator in (closing, as_last_step):
        found = setrnn.scorers.label_f1(estimator, NEW_TEXTS, leaves)
        assert found == setrnn.scorers.label_f1(whole, NEW_TEXTS, truth)


def test_unknown_labels_can_be_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = SetRNNClassifier("br")
        classifier.set_fit_request(unknown=True, complete=True)
        classifier.set_score_request(unknown=True, complete=True)
        options = {"cv": 2, "error_score": "raise"}
        scores = cross_val_score(classifier, TEXTS, GIVEN, params=SAID, **options)
        search = GridSearchCV(classifier, {"rule": ["set", "f1"]}, **options)
        search.fit(TEXTS, GIVEN, **SAID)
    by_hand = []
    for part in np.array_split(np.arange(len(TEXTS)), 2):
        rest = np.setdiff1d(np.arange(len(TEXTS)), part)
        fitted = SetRNNClassifier("br").fit(*take(rest), **said_of(rest))
        by_hand.append(fitted.score(*take(part), **said_of(part)))
    np.testing.assert_allclose(scores, by_hand)
    assert search.best_score_ == pytest.approx(max(search.cv_results_["mean_test_score"]))


def take(rows):
    return [TEXTS[row] for row in rows], [GIVEN[row] for row in rows]


def said_of(rows):
    return {name: [values[row] for row in rows] for name, values in SAID.items()}


def test_unknown_labels_are_scored_as_evaluate_does():
    classifier = SetRNNClassifier("br").fit(TEXTS, GIVEN, **SAID)
    found = classifier.score(TEXTS, GIVEN, **SAID)
    expected = evaluate(classifier.tagger_, HIDDEN, allow_training_documents=True)
    assert found == pytest.approx(expected.scores.instance_f1)
    assert found != classifier.score(TEXTS, GIVEN)
    with pytest.raises(DataError, match="No label of any text is known"):
        classifier.score(["x"], [[]], complete=[False])


@pytest.mark.parametrize(
    ("parameters", "said", "message"),
    [
        ({}, {"unknown": [["a"]]}, r"unknown must have a row for each text: .*160 texts, 1 rows"),
        ({}, {"complete": [True] * 3}, r"complete must have a row for each text: .* 3 rows"),
        ({}, {"unknown": ["a"] * 160}, r"unknown\[0\] must be a collection of strings"),
        ({}, {"complete": ["no"] * 160}, r"complete\[0\] must be True or False, got 'no'"),
        ({}, {"complete": True}, r"complete must be a list with True or False"),
        ({}, {"unknown": LABEL_SETS}, r"is given and unknown"),
        ({"hierarchy": {"a": "b"}}, {}, "names none of the"),
        ({"hierarchy": {"a": "b", "b": "a"}}, {}, "cycle"),
        ({"hierarchy": 3}, {}, "A hierarchy is a file"),
        ({"close_labels": True}, {}, "Only a hierarchy can close labels"),
    ],
)
def test_what_cannot_be_used_is_refused_by_fit(parameters, said, message):
    with pytest.raises(DataError, match=message):
        SetRNNClassifier("br", **parameters).fit(TEXTS, LABEL_SETS, **said)
