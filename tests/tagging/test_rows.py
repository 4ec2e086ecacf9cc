"""Predictions as rows of a table."""

import math
from dataclasses import replace

import pytest

from setrnn.data.example import Example
from setrnn.errors import ConfigError, ModelError
from setrnn.systems.candidates import ScoredSet
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.rows import Columns, check_table, json_rows, table_rows

PLAIN = Columns()
FOUND = Prediction(
    ("a", "b"), 0.5, accepted=True, label_probabilities={"a": 0.9, "b": 0.6}, notes=("Cut.", "Odd.")
)


def row(columns, found=FOUND, wanted=PLAIN):
    (made,) = table_rows([Example("x:1", "text", columns=columns)], [found], wanted)
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


def test_each_label_has_a_column_with_its_probability_or_whether_it_is_predicted():
    all_labels = {"labels": 0.25, "b": 0.60004, "a": 0.90006}
    found = replace(FOUND, label_probabilities=all_labels)
    made = row({"id": "1"}, found, Columns(labels=tuple(all_labels), values="probability"))
    assert (made["predicted_labels"], made["a"], made["b"]) == (0.25, 0.90006, 0.60004)
    assert made["label_probabilities"] == [0.90006, 0.60004], "of the predicted labels alone"
    made = row({"id": "1", "a": "old"}, wanted=Columns(labels=("labels", "b", "a")))
    assert (made["predicted_labels"], made["a"], made["predicted_a"], made["b"]) == (0, "old", 1, 1)


def test_only_probabilities_are_rounded():
    found = Prediction(("a",), 0.123456, (ScoredSet(("b",), 0.00004),))
    made = row({"id": "1", "price": 1.123456}, found, Columns(digits=4))
    assert (made["price"], made["probability"]) == (1.123456, 0.1235)
    assert made["alternatives"] == [{"labels": ["b"], "probability": 0.0}]


@pytest.mark.parametrize("make", [json_rows, table_rows])
def test_a_model_that_gives_no_numbers_is_refused(make):
    with pytest.raises(ModelError, match="Document '1'"):
        list(make([Example("1", "t")], [Prediction(("a",), math.nan)]))


def test_labels_that_hold_the_separator_are_refused():
    check_table("o.csv", ["a, b"], ";")
    check_table("o.parquet", ["a, b"], ",")
    with pytest.raises(ConfigError, match="'a, b' contains ','"):
        check_table("o.csv", ["a, b"], ",")
