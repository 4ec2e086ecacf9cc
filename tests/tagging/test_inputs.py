"""Every form of texts and labels that a user may pass, through the estimator."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from quick_classifiers import FEW_SETS, FEW_TEXTS, classical, indicator

from setrnn.errors import DataError

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize(
    "form", [np.asarray, sp.csr_matrix, sp.coo_array, np.ndarray.tolist, list, sp.csc_matrix]
)
@pytest.mark.parametrize("dtype", [int, bool, float])
def test_every_form_of_indicator_matrix_means_the_same(form, dtype):
    matrix = indicator(FEW_SETS, ["fruit", "red"])
    classifier = classical().fit(FEW_TEXTS, form(matrix.astype(dtype)))
    expected = classical().fit(FEW_TEXTS, FEW_SETS)
    np.testing.assert_array_equal(classifier.classes_, [0, 1])
    np.testing.assert_array_equal(classifier.predict(FEW_TEXTS), expected.predict(FEW_TEXTS))
    assert classifier.predict_sets(["red apple"])[0].labels == ("0", "1")
    assert classifier.score(FEW_TEXTS, form(matrix.astype(dtype))) == 1


@pytest.mark.parametrize(
    ("text_form", "y_form"),
    [
        (tuple, tuple),
        (np.array, lambda sets: [frozenset(row) for row in sets]),
        (pd.Series, pd.Series),
        (pa.array, lambda sets: pa.array([sorted(row) for row in sets])),
        (lambda texts: pa.chunked_array([texts]), lambda sets: [tuple(row) for row in sets]),
        (iter, lambda sets: (sorted(row) * 2 for row in sets)),
        (list, lambda sets: pd.Series([np.array(sorted(row), dtype=str) for row in sets])),
    ],
)
def test_every_form_of_texts_and_label_sets_means_the_same(text_form, y_form):
    expected = classical().fit(FEW_TEXTS, FEW_SETS)
    classifier = classical().fit(text_form(FEW_TEXTS), y_form(FEW_SETS))
    assert list(classifier.classes_) == ["fruit", "red"]
    assert all(type(name) is str for name in classifier.tagger_.labels.names)
    assert classifier.predict_sets(text_form(FEW_TEXTS)) == expected.predict_sets(FEW_TEXTS)
    assert classifier.score(text_form(FEW_TEXTS), y_form(FEW_SETS)) == 1


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("red apple", r"such as \[text\], got .red apple."),
        (None, r"list of strings, such as .*, got None"),
        (7, r"list of strings, such as .*, got 7"),
        ({"red apple", "pear"}, "must be a list of strings"),
        ([], "0 texts"),
        (["red apple", None], r"texts\[1\] must be a string, got None. Write '' for"),
        (["red apple", b"pear"], r"texts\[1\] must be a string, got b'pear'"),
        ([["red", "apple"], ["pear"]], r"texts\[0\] must be a string, got \['red', 'apple'\]"),
        (np.array([["red"], ["pear"]]), "Take the one column"),
        (sp.csr_matrix(np.eye(2)), "got a sparse matrix"),
    ],
)
def test_bad_texts_are_refused(texts, message):
    with pytest.raises(DataError, match=message) as refusal:
        classical().fit(texts, [["fruit"], []])
    assert isinstance(refusal.value, ValueError)


def test_half_a_character_in_a_text_becomes_a_question_mark():
    broken, whole = (
        classical().fit(["red apple", each], [["fruit"], []]) for each in ("\ud83d", "?")
    )
    assert broken.predict_sets(["red"]) == whole.predict_sets(["red"])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["fruit", "red"], r"y\[0\] must be .* got 'fruit'. Write \['fruit'\]: \[\[each\] for"),
        (np.array(["fruit", "red"]), r"got 'fruit'. Write \['fruit'\]"),
        ("fruit", "y must be a list with a collection of labels for each text, got 'fruit'"),
        (None, "requires y to be passed, but the target y is None"),
        ([0, 1], "got one class or continuous value per text, such as 0"),
        (np.array([0.5, 1]), "got one class or continuous value per text, such as 0.5"),
        ([["fruit"]], "there are 2 texts, 1 rows"),
        (np.zeros((3, 2)), "there are 2 texts, 3 rows"),
        ([["fruit"], None], r"y\[1\] must be a collection of strings, got None. .* or \[\] for"),
        ([["fruit"], {"red": 1}], r"y\[1\] must be a collection of strings, got \{'red': 1\}"),
        ([{1}, {2}], r"y\[0\] must be a collection of strings, got \{1\}, with 1 in it"),
        ([["fruit"], ["red", ""]], r"y\[1\] holds an empty string"),
        ([["fruit"], ["half \ud83d"]], r"y\[1\] holds half a character"),
        ([[0, 2], [1, 0]], "y must hold 0 and 1 only, got 2"),
        (sp.csr_matrix([[0, -1], [1, 0]]), "y must hold 0 and 1 only, got -1"),
        ([[0, 1], [np.nan, 0]], "y must hold 0 and 1 only, got nan"),
        ([[0, 1], [0]], "rows of numbers differ in length"),
        ([[0, 1], ["red", "fruit"]], "or hold something else"),
    ],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(DataError, match=message):
        classical().fit(["red apple", "green pear"], y)
