"""Measures of a model, label by label too, and the label probabilities of its predictions."""

from dataclasses import replace

import numpy as np
import pytest

from setrnn import Prediction
from setrnn.data.read import write_examples
from setrnn.data.source import Source
from setrnn.errors import ConfigError, DataError
from setrnn.metrics import evaluate_label_sets
from setrnn.systems.limits import Limits
from setrnn.tagging.documents import prepared_batches
from setrnn.tagging.evaluate import evaluate, measure_rules, score_labels
from setrnn.tagging.trust.acceptance import LabelAcceptance
from setrnn.tagging.trust.calibrate import calibrate
from small_taggers import with_thresholds


def varying(evaluation):
    return {
        name: value
        for name, value in evaluation.as_dict().items()
        if name not in ("rule", "documents_per_second") and value is not None
    }


def test_the_scores_are_those_of_the_predictions(tagger, small_examples):
    examples = small_examples["test"]
    found = evaluate(tagger, examples)
    predictions = tagger.tag(
        [each.text for each in examples], features=[each.features for each in examples]
    )
    expected = evaluate_label_sets(
        [each.labels for each in examples],
        [each.labels for each in predictions],
        tagger.labels.names,
    )
    assert found.scores == expected
    assert found.rule == tagger.rule_or_own(None)
    mean = np.mean([each.probability for each in predictions])
    assert found.mean_probability == pytest.approx(mean, rel=1e-4)


def test_a_prepared_split_gives_what_its_documents_give(tagger, small_examples, small_prepared):
    whole = varying(evaluate(tagger, small_examples["test"]))
    prepared = varying(evaluate(tagger, small_prepared, split="test"))
    assert prepared == pytest.approx(whole, rel=1e-4)


def test_rules_measured_together_are_those_measured_one_by_one(tagger, small_prepared):
    calibrated = with_thresholds(tagger)
    batches = [next(prepared_batches(calibrated, small_prepared, "test")).take(np.arange(20))]
    together = measure_rules(calibrated, batches, calibrated.rules)
    for rule, found in together.items():
        alone = measure_rules(calibrated, batches, [rule])[rule]
        expected = [each.labels for each in calibrated.tag_tokens(batches[0][0], rule)]
        assert [each.labels for each in found.predictions] == expected
        assert [each.labels for each in alone.predictions] == expected
        one, other = (varying(each) for each in (found, alone))
        assert one == pytest.approx(other, rel=1e-5, abs=1e-8)


def test_the_log_likelihood_is_the_mean_of_the_true_sets(tagger, small_examples):
    examples = small_examples["test"]
    known = [each for each in examples if set(each.labels) <= set(tagger.labels.names)]
    texts, features = [each.text for each in known], [each.features for each in known]
    sets = tagger.labels.encode([each.labels for each in known])
    rows = sets.padded()[:, None]
    log_probs = tagger.system.set_log_probs(tagger.encoder.encode(texts, features), rows)
    found = evaluate(tagger, examples)
    assert found.set_log_likelihood == pytest.approx(
        np.maximum(log_probs, np.log(1e-12)).mean(), rel=1e-4
    )
    assert found.n_impossible_sets == (log_probs < np.log(1e-12)).sum()
    assert found.as_dict()["set_log_likelihood"] == found.set_log_likelihood


def test_limits_hold_in_evaluation(taggers, small_examples):
    found = evaluate(taggers["br"], small_examples["test"], limits=Limits(2, 2))
    assert found.scores.mean_predicted_set_size == 2


def test_a_file_a_folder_and_examples_give_the_same(taggers, small_examples, tmp_path):
    tagger, examples = taggers["br"], small_examples["test"]
    write_examples(examples, tmp_path / "test.jsonl")
    write_examples(small_examples["train"], tmp_path / "train.jsonl")
    expected = varying(evaluate(tagger, examples))
    for data in (tmp_path / "test.jsonl", str(tmp_path), Source(str(tmp_path))):
        assert varying(evaluate(tagger, data)) == expected
    other = evaluate(tagger, tmp_path, split="train").scores
    assert other.n_documents == len(small_examples["train"])


def test_skipped_rows_are_a_warning(taggers, small_examples, tmp_path, notes):
    file = tmp_path / "test.jsonl"
    write_examples(small_examples["test"][:5], file)
    file.write_text(file.read_text() + "no JSON\n")
    found = evaluate(taggers["br"], Source(str(file), on_bad_row="skip"))
    assert found.scores.n_documents == 5
    assert "1 rows could not be read" in notes.warnings[0]
    assert "line 6" in notes.texts[1]


def test_what_cannot_be_measured_is_refused(taggers, small_examples):
    with pytest.raises(DataError, match="no documents"):
        evaluate(taggers["br"], [])
    with pytest.raises(DataError, match="Example"):
        evaluate(taggers["br"], [("invoice", ["billing"])])
    with pytest.raises(ConfigError, match="'br' does not"):
        evaluate(taggers["br"], small_examples["test"], "sequence")
    for use in (evaluate, calibrate):
        with pytest.raises(ConfigError, match=r"setrnn\.load"):
            use("model", "newsroom")


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
