"""Cross-validation and grid search with every form of labels; DataFrames; scorers."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from quick_classifiers import classical, indicator
from sklearn.model_selection import cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import setrnn
from setrnn.data import newsroom
from setrnn.errors import ConfigError, DataError
from setrnn.metrics import MEASURES

pd = pytest.importorskip("pandas")

EXAMPLES = list(newsroom.examples("train"))[:120]
TEXTS = [example.text for example in EXAMPLES]
LISTS = [list(example.labels) for example in EXAMPLES]
NAMES = sorted(set().union(*LISTS))
MATRIX = indicator(LISTS, NAMES)
FRAME = pd.DataFrame(MATRIX, columns=NAMES)
FORMS = {
    "lists": LISTS,
    "tuples": [tuple(row) for row in LISTS],
    "sets": [set(row) for row in LISTS],
    "series": pd.Series(LISTS),
    "column": pd.DataFrame({"labels": LISTS}),
    "matrix": MATRIX,
    "frame": FRAME,
}


@pytest.fixture(scope="module")
def scores():
    return cross_val_score(classical(), TEXTS, FORMS["sets"], cv=2, error_score="raise")


@pytest.mark.parametrize("form", [name for name in FORMS if name != "sets"])
def test_every_form_of_labels_gives_the_same_cross_validation(form, scores):
    found = cross_val_score(classical(), TEXTS, FORMS[form], cv=2, error_score="raise")
    assert (found > 0.1).all()
    np.testing.assert_allclose(found, scores, atol=1e-9)


@pytest.mark.parametrize("form", ["lists", "matrix"])
def test_scorers_are_the_measures(form):
    fitted = classical().fit(TEXTS, FORMS[form])
    new = list(newsroom.examples("test"))[:60]
    texts, labels = [each.text for each in new], [each.labels for each in new]
    values = {
        name: scorer(make_pipeline(FunctionTransformer(), fitted), texts, labels)
        for name, scorer in setrnn.scorers.SCORERS.items()
    }
    if form == "lists":
        evaluation = setrnn.evaluate(fitted.tagger_, new).scores
        assert evaluation.n_unseen_labels > 0
        for measure in MEASURES:
            sign = -1 if measure == "hamming_loss" else 1
            name = "neg_hamming_loss" if sign < 0 else measure
            assert values[name] == pytest.approx(sign * getattr(evaluation, measure))
    assert fitted.score(texts, labels) == pytest.approx(values["instance_f1"])
    found = cross_validate(
        classical(), TEXTS, FORMS[form], cv=2, scoring=setrnn.scorers.SCORERS, error_score="raise"
    )
    assert (found["test_instance_f1"] > found["test_subset_accuracy"]).all()
    assert (found["test_neg_hamming_loss"] < 0).all()


def test_a_scorer_has_a_name_and_can_be_sent_to_other_processes():
    for name, scorer in setrnn.scorers.SCORERS.items():
        assert getattr(setrnn.scorers, name) == scorer == pickle.loads(pickle.dumps(scorer))
        assert repr(scorer) == f"setrnn.scorers.{name}"


def test_scorers_measure_classifiers_of_scikit_learn():
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    other = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression()))
    for y in (MATRIX[:, :4], sp.csr_matrix(MATRIX[:, :4])):
        other.fit(TEXTS, y)
        assert setrnn.scorers.micro_f1(other, TEXTS, y) > 0.5


@pytest.mark.parametrize("scoring", ["f1_samples", "f1_micro", "average_precision"])
def test_scikit_learns_own_scorers_take_matrices(scoring):
    for y in (MATRIX[:, MATRIX.sum(axis=0) > 9], FRAME.loc[:, MATRIX.sum(axis=0) > 9]):
        found = cross_val_score(classical(), TEXTS, y, cv=2, scoring=scoring)
        assert (found > 0.1).all()


def test_the_columns_of_a_frame_are_the_labels():
    turned = FRAME[NAMES[::-1]]
    fitted = classical().fit(pd.Series(TEXTS), turned)
    assert list(fitted.classes_) == NAMES[::-1]
    assert set(fitted.tagger_.labels.names) == set(NAMES)
    predicted = pd.DataFrame(fitted.predict(TEXTS), columns=fitted.classes_)
    by_lists = classical().fit(TEXTS, LISTS)
    np.testing.assert_array_equal(predicted[NAMES], by_lists.predict(TEXTS))
    score = fitted.score(TEXTS, LISTS)
    for y in (turned, FRAME, MATRIX[:, ::-1], FRAME.astype(bool), FRAME[NAMES].astype(float)):
        assert fitted.score(TEXTS, y) == pytest.approx(score), "columns go by their names"
    assert fitted.score(TEXTS, FRAME.assign(new=1)) < score, "a new label is missed"


def test_frames_that_are_no_labels_are_refused():
    fitted = classical().fit(TEXTS, FRAME)
    with pytest.raises(DataError, match="knows none of the columns"):
        fitted.score(TEXTS, FRAME.add_prefix("x-"))
    with pytest.raises(DataError, match="name of its own"):
        classical().fit(TEXTS, pd.concat([FRAME, FRAME], axis=1))
    with pytest.raises(DataError, match="0 and 1"):
        classical().fit(TEXTS, FRAME * 2)
    numbered = classical().fit(TEXTS, pd.DataFrame(MATRIX))
    np.testing.assert_array_equal(numbered.classes_, np.arange(len(NAMES)))


def test_predictions_are_a_list_and_a_frame():
    fitted = classical().fit(TEXTS, LISTS)
    texts = pd.Series(TEXTS[:5], index=list("abcde"))
    found = fitted.predict_sets(texts, top=2)
    assert found == fitted.tagger_.tag(TEXTS[:5], top=2)
    frame = found.to_frame()
    assert list(frame.index) == list("abcde")
    assert list(frame.columns)[:3] == ["labels", "probability", "alternatives"]
    assert "<table" in found._repr_html_()
    assert frame.loc["b", "labels"] == list(found[1].labels)
    assert frame["probability"].tolist() == [each.probability for each in found]
    assert list(fitted.predict_sets(TEXTS[:2]).to_frame().index) == [0, 1]
    empty = fitted.predict_sets([]).to_frame()
    assert len(empty) == 0
    assert {"labels", "probability"} <= set(empty.columns)
    assert pickle.loads(pickle.dumps(found)) == found


def test_without_pandas_only_the_frame_is_missing(monkeypatch):
    fitted = classical().fit(TEXTS[:9], LISTS[:9])
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    found = fitted.predict_sets(TEXTS[:2])
    assert found._repr_html_() is None
    with pytest.raises(ConfigError, match="pip install pandas"):
        found.to_frame()
