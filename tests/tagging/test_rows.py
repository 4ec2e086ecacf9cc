"""Predictions as rows of a table."""

import math

import pytest

from setrnn.data.example import Example
from setrnn.errors import ConfigError, ModelError
from setrnn.systems.candidates import ScoredSet
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.rows import check_separator, json_rows, table_rows

FOUND = Prediction(
    ("a", "b"), 0.5, accepted=True, label_probabilities={"a": 0.9, "b": 0.6}, notes=("Cut.", "Odd.")
)


def row(columns, found=FOUND, id_field="id"):
    (made,) = table_rows([Example("x:1", "text", columns=columns)], [found], id_field)
    return made


def test_columns_of_the_input_come_first_and_unchanged():
    made = row({"title": "T", "id": "1", "year": 1999})
    assert list(made.items()) == [
        *(("title", "T"), ("id", "x:1"), ("year", 1999)),
        *(("labels", ["a", "b"]), ("probability", 0.5), ("accepted", True)),
        *(("label_probabilities", [0.9, 0.6]), ("notes", "Cut. Odd.")),
    ]


def test_a_document_without_columns_has_its_id_and_text():
    assert list(row(None))[:3] == ["id", "text", "labels"]
    assert list(row({"title": "T"}, id_field="key"))[:2] == ["key", "title"]


def test_no_column_of_the_input_is_replaced():
    made = row({"labels": "true", "predicted_labels": "old"})
    assert made["labels"] == "true"
    assert made["predicted_labels"] == "old"
    assert made["predicted_predicted_labels"] == ["a", "b"]


def test_alternatives_are_there_if_asked_for():
    found = Prediction(("a",), 0.5, (ScoredSet((), 0.2),))
    assert row({}, found)["alternatives"] == [{"labels": [], "probability": 0.2}]
    assert "alternatives" not in row({})


@pytest.mark.parametrize("make", [json_rows, table_rows])
def test_a_model_that_gives_no_numbers_is_refused(make):
    with pytest.raises(ModelError, match="Document '1'"):
        list(make([Example("1", "t")], [Prediction(("a",), math.nan)]))


def test_labels_that_hold_the_separator_are_refused():
    check_separator(["a, b"], ";")
    check_separator(["a, b", "none"], "none")
    with pytest.raises(ConfigError, match="'a, b' contains ','"):
        check_separator(["a, b"], ",")
