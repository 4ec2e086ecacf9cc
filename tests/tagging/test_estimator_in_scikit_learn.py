"""The estimator in the tools of scikit-learn: its checks, copies, pipelines and searches."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from quick_classifiers import (
    FEW_SETS,
    FEW_TEXTS,
    KINDS,
    LABEL_SETS,
    NEW_TEXTS,
    QUICK,
    TEXTS,
    classical,
    few_fitted,
    quick,
)
from sklearn.model_selection import cross_val_score, cross_validate
from sklearn.utils.estimator_checks import estimator_checks_generator

from setrnn.methods import METHODS
from setrnn.tagging.estimator import SetRNNClassifier

# What scikit-learn's checks ask for and texts with label sets cannot give. Most checks of a
# classifier give one class a row, as 1 and 2 or as names; a label set is neither.
EXEMPT = {
    "check_n_features_in": "texts have no columns to count",
    "check_n_features_in_after_fitting": "texts have no columns to count",
    "check_estimators_nan_inf": "the rows stand for texts, where 'nan' is a word like others",
    "check_estimators_empty_data_messages": "a row without columns stands for an empty text",
    "check_complex_data": "its complex y is refused, but as y that holds no label sets",
    "check_fit2d_predict1d": "a number is refused, but as one that is no text",
    "check_estimators_dtypes": "its y is classes 1 and 2, not 0 and 1",
    "check_fit2d_1feature": "its y is classes 1 and 2, not 0 and 1",
    "check_classifier_data_not_an_array": "its y is classes 1 and 2, not 0 and 1",
    "check_classifiers_classes": "its y is one class name a row",
    "check_classifier_multioutput": "the most probable set is not the labels of marginal over 1/2",
    "check_classifiers_train": "it wants one class a row from predict, not an indicator matrix",
    "check_classifier_not_supporting_multiclass": "classes are refused, but not as non-binary ones",
}


# What it asks of marginals, which a recurrent system takes from the sets its search finds.
EXEMPT_RECURRENT = {
    **EXEMPT,
    "check_classifiers_multilabel_output_format_predict_proba": "0 for labels in no set found",
}


class RowsAsTexts(SetRNNClassifier):
    """Read the rows of a matrix as texts: all that scikit-learn's checks give are matrices.

    Without it they are passed over, for the tags say that the estimator takes none.
    """

    def fit(self, texts, y, features=None):
        return super().fit(self.written(texts), y, features)

    def predict(self, texts, features=None):
        return super().predict(self.written(texts), features)

    def predict_proba(self, texts, features=None):
        return super().predict_proba(self.written(texts), features)

    def score(self, texts, y, sample_weight=None, features=None):
        return super().score(self.written(texts), y, sample_weight, features)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"  # for the checks of classifiers
        tags.input_tags.two_d_array = True
        tags.input_tags.one_d_array = False
        return tags

    @staticmethod
    def written(rows):
        if sp.issparse(rows) or np.ndim(rows) != 2:
            return rows
        return [
            " ".join(f"column{column}is{2 * value:.0f}" for column, value in enumerate(row))
            for row in np.asarray(rows)
        ]


CHECKS = [
    pytest.param(estimator, check, id=f"{estimator.method}-{check.func.__name__}-{number}")
    for each in (RowsAsTexts("br-support"), RowsAsTexts(settings=QUICK, device="cpu"))
    for number, (estimator, check) in enumerate(estimator_checks_generator(each))
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learn_checks(estimator, check):
    """All checks pass, except those listed; with br-support, each of those still fails."""
    name, is_network = check.func.__name__, METHODS[estimator.method].is_network
    if name not in (EXEMPT_RECURRENT if is_network else EXEMPT):
        check(estimator)
    elif is_network:
        pytest.skip(EXEMPT_RECURRENT[name])
    else:
        with pytest.raises(Exception):  # noqa: B017, PT011 (any: the check does not pass)
            check(estimator)


def test_random_state_follows_scikit_learn():
    def seed(state):
        return classical(random_state=state).fit(["a"], [()]).tagger_.config.seed

    assert seed(np.random.RandomState(3)) == seed(np.random.RandomState(3))
    assert seed(np.random.RandomState(3)) != seed(np.random.RandomState(4))
    assert seed(None) != seed(None)


def through_joblib(classifier):
    buffer = io.BytesIO()
    joblib.dump(classifier, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


@pytest.mark.parametrize("method", KINDS)
@pytest.mark.parametrize(
    "copied",
    [lambda each: pickle.loads(pickle.dumps(each)), through_joblib, copy.deepcopy],
    ids=["pickle", "joblib", "deepcopy"],
)
def test_copies_predict_the_same_before_and_after_use(method, copied):
    classifier = few_fitted(method)
    fresh = copied(classifier)
    expected = classifier.predict_sets(FEW_TEXTS)
    assert fresh.predict_sets(FEW_TEXTS) == expected
    assert copied(classifier).predict_sets(FEW_TEXTS) == expected
    np.testing.assert_array_equal(
        fresh.predict_proba(FEW_TEXTS), classifier.predict_proba(FEW_TEXTS)
    )


def test_cross_validation_scores_sets_where_parts_have_other_labels():
    label_sets = [
        labels | {"first-part"} if n < 60 else labels for n, labels in enumerate(LABEL_SETS)
    ]
    scores = cross_val_score(classical(), TEXTS, label_sets, cv=3, error_score="raise")
    assert 0 < scores[0] < scores[1:].min(), "a label of these texts only is always missed"


def test_other_processes_fit_and_hand_back():
    texts, sets = np.array(TEXTS[:40]), LABEL_SETS[:40]
    halves = [(range(20), range(20, 40)), (range(20, 40), range(20))]
    found = cross_validate(
        quick(), texts, sets, cv=halves, n_jobs=2, return_estimator=True, error_score="raise"
    )
    for (train, _), classifier in zip(halves, found["estimator"], strict=True):
        alone = quick().fit(texts[train], [sets[row] for row in train])
        expected = alone.predict_sets(NEW_TEXTS)
        own = classifier.predict_sets(NEW_TEXTS)
        assert [each.labels for each in own] == [each.labels for each in expected]
        for one, other in zip(own, expected, strict=True):
            assert one.probability == pytest.approx(other.probability, rel=1e-3)


def test_a_fitted_network_is_pickled_for_the_cpu():
    """A pickle from a machine with a GPU is read on one without."""
    system = quick().fit(FEW_TEXTS, FEW_SETS).tagger_.system
    state = system.__getstate__()
    assert all(each.device.type == "cpu" for each in state["network"].parameters())
    twin = object.__new__(type(system))
    twin.__setstate__({**state, "device": torch.device("cuda")})
    assert twin.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
