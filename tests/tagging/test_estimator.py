import pickle
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from quick_classifiers import (
    FEW_SETS,
    FEW_TEXTS,
    KINDS,
    LABEL_SETS,
    NEW_LABEL_SETS,
    NEW_TEXTS,
    TEXTS,
    classical,
    indicator,
    quick,
)
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score

import setrnn
from setrnn import Group, Limits
from setrnn.errors import ConfigError, DataError
from setrnn.methods import METHODS
from setrnn.tagging.estimator import SetRNNClassifier


@pytest.fixture(scope="module")
def fitted():
    return classical().fit(TEXTS, LABEL_SETS)


def test_predict_agrees_with_predict_sets(fitted):
    expected = indicator(
        [prediction.labels for prediction in fitted.predict_sets(NEW_TEXTS)], fitted.classes_
    )
    predicted = fitted.predict(NEW_TEXTS)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, expected)
    assert predicted.any()


def test_predict_proba_is_in_the_order_of_classes(fitted):
    assert list(fitted.classes_) == sorted(set().union(*LABEL_SETS))
    probs = fitted.predict_proba(NEW_TEXTS)
    own_order = fitted.tagger_.predict_proba(NEW_TEXTS)
    assert list(fitted.tagger_.labels.names) != list(fitted.classes_)
    for column, label in enumerate(fitted.classes_):
        own = own_order[:, fitted.tagger_.labels.index[label]]
        np.testing.assert_array_equal(probs[:, column], own)


def test_a_column_without_ones_is_never_predicted():
    matrix = np.column_stack([np.zeros(5, dtype=int), indicator(FEW_SETS, ["fruit", "red"])])
    classifier = classical().fit(FEW_TEXTS, matrix)
    np.testing.assert_array_equal(classifier.classes_, [0, 1, 2])
    assert not classifier.predict(FEW_TEXTS)[:, 0].any()
    assert not classifier.predict_proba(FEW_TEXTS)[:, 0].any()
    assert classifier.score(FEW_TEXTS, matrix) == 1


@pytest.mark.parametrize("method", [*KINDS, "set-rnn-exact", "sigmoid"])
@pytest.mark.parametrize(
    ("texts", "y"),
    [
        (FEW_TEXTS, [()] * 5),
        (FEW_TEXTS, np.zeros((5, 3), dtype=int)),
        (FEW_TEXTS, [("fruit",)] * 5),
        (["", "the of", "", ""], [("fruit",)] * 3 + [()]),
        (["apple"], [("fruit", "red")]),
    ],
    ids=["no labels", "only zeros", "one label", "no words", "one text"],
)
def test_constant_data_can_be_learned(method, texts, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier = quick(method, epochs=8)
        if METHODS[method].is_network and not np.any([len(row) and np.any(row) for row in y]):
            with pytest.raises(DataError, match="No text has a label"):
                classifier.fit(texts, y)
            return
        classifier.fit(texts, y)
        probs = classifier.predict_proba([*texts, "new words"])
        assert probs.shape == (len(texts) + 1, len(classifier.classes_))
        assert np.isfinite(probs).all()
        assert classifier.score(texts, y) >= 0.75


def test_score_equals_scikit_learns_f1_of_samples_in_both_forms(fitted):
    known = set(fitted.classes_)
    label_sets = [labels & known for labels in NEW_LABEL_SETS]
    matrix = indicator(label_sets, fitted.classes_)
    weights = np.arange(len(NEW_TEXTS)) + 1.0
    options = {"average": "samples", "zero_division": 1.0}
    predicted = fitted.predict(NEW_TEXTS)
    for y in (label_sets, matrix, sp.csr_matrix(matrix)):
        assert fitted.score(NEW_TEXTS, y) == pytest.approx(f1_score(matrix, predicted, **options))
        assert fitted.score(NEW_TEXTS, y, sample_weight=weights) == pytest.approx(
            f1_score(matrix, predicted, sample_weight=weights, **options)
        )
    assert 0 < fitted.score(NEW_TEXTS, label_sets) < 1


def test_score_refuses_other_columns_than_those_of_fit(fitted):
    with pytest.raises(DataError, match="y has 3 columns, but the classifier was fitted with"):
        fitted.score(NEW_TEXTS, np.zeros((len(NEW_TEXTS), 3)))
    with pytest.raises(DataError, match="fitted with 0 labels"):
        classical().fit(["a"], [()]).score(["a"], [[1, 0]])


def test_features_are_learned_and_used():
    texts = ["report"] * 8
    features, label_sets = [["sea"], ["land"]] * 4, [["ship"], ["train"]] * 4
    classifier = classical(settings={"classical.l1": 0.0}).fit(texts, label_sets, features)
    predicted = classifier.predict_sets(["report"] * 2, features=[{"sea"}, {"land"}])
    assert [prediction.labels for prediction in predicted] == [("ship",), ("train",)]
    assert classifier.score(texts, label_sets, features=features) == 1
    # Without a feature, both labels are the best guess in F1: 2/3 for each text. But no text has
    # both.
    free = classifier.tagger_.tag(["report"], limits=Limits(free=True))[0]
    assert free.labels == ("ship", "train")
    assert classifier.score(texts, label_sets) == 0.5
    assert classifier.predict(texts, features).sum() == 8
    assert classifier.predict_proba(texts, features)[0, 0] > 0.5
    with pytest.raises(DataError, match="features must have a row for each text"):
        classifier.predict(texts, features[:3])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "br-suport"}, "Did you mean 'br-support'"),
        ({"preset": "papr"}, "Did you mean 'paper'"),
        ({"rule": "sett"}, "Did you mean 'set'"),
        ({"settings": {"clasical.l1": 1}}, "Did you mean 'classical'"),
        ({"settings": {"classical.l1": "much"}}, "must be a number, got 'much'"),
        ({"method": "br", "rule": "sequence"}, "'br' does not"),
        ({"validation_fraction": 1.0}, "at least 0 and below 1, got 1.0"),
        ({"validation_fraction": "some"}, "at least 0 and below 1, got 'some'"),
        ({"device": "gpu"}, "There is no device 'gpu'"),
    ],
)
def test_bad_parameters_are_refused_by_fit_and_not_before(parameters, message):
    classifier = SetRNNClassifier(**parameters)
    with pytest.raises(ConfigError, match=message):
        classifier.fit(FEW_TEXTS, FEW_SETS)


@pytest.mark.parametrize("name", ["predict", "predict_proba", "predict_sets", "save"])
def test_an_unfitted_classifier_says_so(name):
    with pytest.raises(NotFittedError):
        getattr(SetRNNClassifier(), name)(["red apple"])
    with pytest.raises(NotFittedError):
        SetRNNClassifier().score(["red apple"], [[]])


def test_a_saved_model_predicts_by_the_rule_of_the_classifier(tmp_path):
    classifier = SetRNNClassifier("br").fit(TEXTS, LABEL_SETS)
    by_f1 = classifier.predict_sets(NEW_TEXTS)
    assert by_f1 != classifier.tagger_.tag(NEW_TEXTS, "set", top=3)
    classifier.save(tmp_path / "model")
    loaded = setrnn.load(tmp_path / "model")
    assert loaded.tag(NEW_TEXTS, top=3) == by_f1
    assert loaded.explain(NEW_TEXTS[0]).predicted.labels == by_f1[0].labels


@pytest.mark.parametrize("method", KINDS)
def test_fit_leaves_no_files_and_holds_none(method, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    classifier = quick(method).fit(FEW_TEXTS, FEW_SETS)
    assert list(tmp_path.iterdir()) == []
    assert b"memmap" not in pickle.dumps(classifier)
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert str(tmp_path) not in maps.read_text()


def test_texts_set_aside_choose_the_best_epoch():
    classifier = quick(epochs=4, validation_fraction=0.25).fit(TEXTS[:80], LABEL_SETS[:80])
    notes = classifier.tagger_.notes
    assert notes["n_documents"] == 60
    assert all("instance_f1" in epoch for epoch in notes["epochs"])
    whole = quick(epochs=4).fit(TEXTS[:80], LABEL_SETS[:80])
    assert whole.tagger_.notes["n_documents"] == 80
    assert not any("instance_f1" in epoch for epoch in whole.tagger_.notes["epochs"])
    plain = classical(validation_fraction=0.25).fit(TEXTS[:80], LABEL_SETS[:80])
    assert plain.tagger_.notes["n_documents"] == 60


def test_texts_set_aside_calibrate_where_they_are_enough():
    for share in (0.0, 0.25, 0.65):
        found = classical(validation_fraction=share).fit(TEXTS, LABEL_SETS)
        n_aside = len(TEXTS) - found.tagger_.notes["n_documents"]
        assert n_aside == pytest.approx(share * len(TEXTS), abs=2)
        calibration = found.tagger_.calibration
        assert (calibration is not None) == (n_aside >= 100)
    assert calibration.n_documents == n_aside
    raw = found.tagger_.tag(NEW_TEXTS[:5], calibrated=False)
    for one, own in zip(found.predict_sets(NEW_TEXTS[:5], top=1), raw, strict=True):
        assert one.labels == own.labels
        assert one.probability != own.probability or own.probability == 0


def test_a_label_only_in_texts_set_aside_is_a_class_that_is_never_predicted():
    label_sets = [{f"label{number}"} for number in range(10)]
    texts = [f"word{number}" for number in range(10)]
    classifier = quick(validation_fraction=0.3).fit(texts, label_sets)
    assert len(classifier.classes_) == 10
    assert len(classifier.tagger_.labels) == 7
    assert (classifier.predict_proba(texts).max(0) == 0).sum() >= 3
    assert classifier.predict(texts).shape == (10, 10)


@pytest.mark.parametrize("verbose", [False, True])
def test_an_epoch_is_a_line_if_asked(capsys, verbose):
    quick(verbose=verbose, validation_fraction=0.4).fit(FEW_TEXTS, FEW_SETS)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if line.startswith("epoch ")]
    assert len(lines) == (2 if verbose else 0)
    assert all("loss" in line and "instance_f1" in line for line in lines)


def test_limits_bound_every_predicted_set(fitted):
    pair = list(fitted.classes_[:2])
    limits = Limits(groups=[Group(pair, 1, exactly=True)])
    bound = classical(limits=limits).fit(TEXTS, LABEL_SETS)
    assert (bound.predict(NEW_TEXTS)[:, :2].sum(axis=1) == 1).all()
    assert (fitted.predict(NEW_TEXTS)[:, :2].sum(axis=1) != 1).any()
