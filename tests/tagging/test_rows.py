"""Predictions as rows of a table."""

import math

import pytest

from setrnn.data.example import Example
from setrnn.errors import ConfigError, ModelError
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


def test_no_column_of_the_input_is_replaced():
    made = row({"labels": "true", "predicted_labels": "old"})
    assert made["labels"] == "true"
    assert made["predicted_labels"] == "old"
    assert made["predicted_predicted_labels"] == ["a", "b"]


@pytest.mark.parametrize("make", [json_rows, table_rows])
def test_a_model_that_gives_no_numbers_is_refused(make):
    with pytest.raises(ModelError, match="Document '1'"):
        list(make([Example("1", "t")], [Prediction(("a",), math.nan)]))


def test_labels_that_hold_the_separator_are_refused():
    check_separator(["a, b"], ";")
    check_separator(["a, b", "none"], "none")
    with pytest.raises(ConfigError, match="'a, b' contains ','"):
        check_separator(["a, b"], ",")
