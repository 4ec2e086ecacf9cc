"""Measures label by label, and the label probabilities of predictions."""

from dataclasses import replace

import numpy as np
import pytest

from setrnn import Prediction, calibrate
from setrnn.tagging.evaluate import score_labels
from setrnn.tagging.trust.acceptance import LabelAcceptance


def test_each_label_is_counted_by_hand():
    truth = [("a", "b"), ("a",), ("b", "new")]
    predictions = [
        Prediction(("a",), 0.5, label_probabilities={"a": 0.9}, accepted_labels=("a",)),
        Prediction(
            ("a", "b"), 0.5, label_probabilities={"a": 0.8, "b": 0.6}, accepted_labels=("a",)
        ),
        Prediction(("a",), 0.5, label_probabilities={"a": 0.7}, accepted_labels=()),
    ]
    safe = LabelAcceptance(0.9, 0.9, np.array([2.0, 0.75, 2.0]))
    first, second, third = score_labels(truth, predictions, ["b", "a", "c"], safe)
    assert (first.label, second.label, third.label) == ("b", "a", "c")
    assert (second.support, second.n_predicted) == (2, 3)
    assert (second.precision, second.recall) == (pytest.approx(2 / 3), 1.0)
    assert second.f1 == pytest.approx(0.8)
    assert (second.threshold, second.accepted_share) == (0.75, pytest.approx(2 / 3))
    assert (second.n_accepted, second.accepted_accuracy) == (2, 1.0)
    assert (first.threshold, first.recall, first.f1) == (None, 0.0, 0.0)
    assert (third.precision, third.recall, third.accepted_share) == (None, None, None)


@pytest.fixture(scope="module")
def calibrated(taggers, small_examples):
    return calibrate(
        taggers["br"], small_examples["train"], target=0.6, allow_training_documents=True
    )


def test_predictions_have_the_probabilities_of_predict_proba(calibrated, test_texts):
    tagger = calibrated.tagger
    probs = tagger.predict_proba(test_texts)
    for row, each in enumerate(tagger.tag(test_texts)):
        columns = [tagger.labels.index[name] for name in each.labels]
        own = dict(zip(each.labels, probs[row, columns].tolist(), strict=True))
        assert each.label_probabilities == pytest.approx(own, abs=1e-5)
        limits = tagger.fitted.label_acceptance.thresholds[columns]
        rows = zip(each.labels, probs[row, columns], limits, strict=True)
        expected = [name for name, p, t in rows if p >= t]
        assert list(each.accepted_labels) == expected
        assert list(each.as_dict()["label_probabilities"]) == list(each.labels)


def test_raw_probabilities_are_the_models_own_and_acceptance_stays(calibrated, test_texts):
    tagger = calibrated.tagger
    own = tagger.tag(test_texts, calibrated=False)
    plain = replace(tagger, calibration=None).tag(test_texts, rule="f1")
    trusted = tagger.tag(test_texts)
    assert [each.accepted_labels for each in own] == [each.accepted_labels for each in trusted]
    by_set = {(row, name): p for row, each in enumerate(own) for name, p in _pairs(each)}
    for row, each in enumerate(plain):
        for name, p in _pairs(each):
            assert by_set.get((row, name), p) == pytest.approx(p, abs=1e-5)


def _pairs(prediction):
    return prediction.label_probabilities.items()
