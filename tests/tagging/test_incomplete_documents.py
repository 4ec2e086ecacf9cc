"""Training, measuring and calibrating with documents whose labels are not all known."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from quick_classifiers import hide

from setrnn.comparison.compare import describe
from setrnn.config import TextSettings, load_config
from setrnn.data.cache import prepare
from setrnn.errors import DataError
from setrnn.methods import METHODS
from setrnn.tagging.documents import example_batches, keep_complete, prepared_batches
from setrnn.tagging.evaluate import evaluate, evaluate_rules
from setrnn.tagging.learn.data import note_labels
from setrnn.tagging.trust.calibrate import fit_calibration
from setrnn.training.start import TrainOptions, train_system
from setrnn.training.validation import best_constant, validate
from small_taggers import SMALL_OVERRIDES

QUICK = load_config(overrides=[*SMALL_OVERRIDES, "training.epochs=1"])


@pytest.fixture(scope="module")
def hidden_examples(small_examples):
    return {
        name: [hide(each, number) for number, each in enumerate(examples[:90])]
        for name, examples in small_examples.items()
    }


@pytest.fixture(scope="module")
def hidden_prepared(hidden_examples, tmp_path_factory):
    streams = {name: partial(iter, each) for name, each in hidden_examples.items()}
    return prepare(streams, tmp_path_factory.mktemp("hidden") / "news", "news", TextSettings(), {})


def arrays_of(method, prepared, config=QUICK):
    trained = train_system(METHODS[method], prepared, config, TrainOptions(device="cpu"))
    return trained.system.arrays()


@pytest.mark.parametrize("method", ["br-support", "sigmoid", "set-rnn", "set-rnn-exact"])
def test_unknown_labels_change_what_is_learned(method, hidden_prepared):
    found = arrays_of(method, hidden_prepared)
    assert all(np.isfinite(each).all() for each in found.values() if each.dtype.kind == "f")
    forgotten = replace(QUICK, training=replace(QUICK.training, forgotten=0.0))
    other = arrays_of(method, hidden_prepared, forgotten)
    assert any(not np.array_equal(each, other[name]) for name, each in found.items())


def test_nothing_forgotten_is_as_if_nothing_was_said(hidden_examples, tmp_path):
    half_said = [replace(each, unknown=()) for each in hidden_examples["train"]]
    unsaid = [replace(each, complete=True) for each in half_said]
    config = replace(QUICK, training=replace(QUICK.training, forgotten=0.0))
    found = []
    for name, train in (("said", half_said), ("unsaid", unsaid)):
        prepared = prepare(
            {"train": partial(iter, train)}, tmp_path / name, "x", TextSettings(), {}
        )
        found.append(arrays_of("set-rnn-exact", prepared, config))
    for name, each in found[0].items():
        assert np.array_equal(each, found[1][name])


@pytest.mark.parametrize("method", ["ocd-rnn", "seq2set-rnn"])
def test_methods_that_need_whole_sets_refuse(method, hidden_prepared):
    with pytest.raises(DataError, match="set-rnn instead"):
        arrays_of(method, hidden_prepared)


def test_a_comparison_needs_a_complete_test_part(hidden_prepared):
    with pytest.raises(DataError, match="complete ones"):
        describe(hidden_prepared)


def test_predictions_of_unknown_labels_are_not_measured(taggers, hidden_examples, notes):
    tagger = taggers["br"]
    examples = hidden_examples["test"]
    found = evaluate(tagger, examples, "set")
    batches = example_batches(tagger, examples)
    predicted = [each for batch in batches for each in tagger.tag_tokens(batch.tokens, "set")]
    f1 = []
    for example, prediction in zip(examples, predicted, strict=True):
        truth, labels = set(example.labels), set(prediction.labels) - set(example.unknown)
        if not example.complete:
            labels &= truth
            if not truth:
                continue
        both = len(truth) + len(labels)
        f1.append(2 * len(truth & labels) / both if both else 1.0)
    assert found.scores.instance_f1 == pytest.approx(np.mean(f1))
    assert found.scores.n_incomplete == sum(each.is_incomplete for each in examples)
    assert any("neither for nor against" in text for text in notes.texts)


def test_set_probabilities_are_measured_on_complete_documents(taggers, hidden_examples):
    tagger = taggers["br"]
    complete = [each for each in hidden_examples["test"] if not each.is_incomplete]
    some, whole = (
        evaluate_rules(tagger, examples, ["set"])["set"]
        for examples in (hidden_examples["test"], complete)
    )
    assert some.set_log_likelihood == whole.set_log_likelihood
    assert some.calibration_error == pytest.approx(whole.calibration_error)


def test_unknown_labels_are_marked_in_the_order_of_the_model(
    taggers, hidden_examples, small_prepared
):
    tagger = taggers["br"]
    (batch,) = example_batches(tagger, hidden_examples["valid"][:6])
    names = np.array(tagger.labels.names)
    assert set(names[batch.unknown[2]]) == set(hidden_examples["valid"][2].unknown)
    given = set(hidden_examples["valid"][1].labels)
    assert set(names[batch.unknown[1]]) == set(names) - given
    of_prepared = next(prepared_batches(tagger, small_prepared, "test"))
    assert of_prepared.unknown is None
    (kept,) = keep_complete([batch])
    assert kept.labels == [hidden_examples["valid"][row].labels for row in (0, 3)]


def test_calibration_uses_sets_of_complete_documents_and_labels_that_are_known(
    taggers, hidden_examples
):
    tagger, examples = taggers["br"], hidden_examples["valid"] * 6
    complete = [each for each in examples if not each.is_incomplete]
    found, of_complete = (fit_calibration(tagger, part) for part in (examples, complete))
    assert found.n_documents == len(complete)
    assert found.scalings == of_complete.scalings
    assert found.thresholds.common != of_complete.thresholds.common
    with pytest.raises(DataError, match="all their labels"):
        fit_calibration(tagger, [each for each in examples if each.is_incomplete])


def test_the_valid_part_may_have_unknown_labels(hidden_prepared):
    trained = train_system(METHODS["br"], hidden_prepared, QUICK, TrainOptions(device="cpu"))
    for rule in ("set", "label-f1"):
        assert 0 < validate(trained.system, hidden_prepared, rule, 60)["instance_f1"] < 1
    assert 0 < best_constant(hidden_prepared, "instance_f1") < 1


@pytest.mark.parametrize(
    ("forgotten", "said"), [(-1.0, "absent"), (1.0, "predicts all labels"), (0.3, None)]
)
def test_training_warns_if_no_document_is_complete(
    hidden_examples, tmp_path, notes, forgotten, said
):
    alone = [each for each in hidden_examples["train"] if not each.complete]
    prepared = prepare({"train": partial(iter, alone)}, tmp_path / "x", "x", TextSettings(), {})
    note_labels(prepared, forgotten)
    assert notes.texts
    assert [said in text for text in notes.warnings] == ([] if said is None else [True])
