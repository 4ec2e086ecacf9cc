"""Predictions as rows to write: JSON objects, or the columns of the input with new ones."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setrnn.data.disk import whole_file
from setrnn.data.example import Example
from setrnn.data.read.delimited import joining_separator
from setrnn.data.read.label_studio import make_result, write_tasks
from setrnn.data.read.write import is_table, write_table
from setrnn.errors import ConfigError, ModelError, printable

if TYPE_CHECKING:  # it loads SciPy, which the help of a command does not need
    from setrnn.tagging.prediction import Completion, Prediction

PREDICTED = "predicted_"
# Columns of a table; what else a prediction holds is only in JSON.
COLUMNS = (
    *("labels", "probability", "accepted", "label_probabilities", "accepted_labels"),
    *("shown_labels", "added", "suggestion", "known_probability", "alternatives", "notes"),
)


def write_predictions(
    examples: Iterable[Example],
    found: Iterable[Prediction | Completion],
    path: str | Path,
    id_field: str = "id",
    separator: str = ";",
    *,
    mark: bool = False,
) -> None:
    """Write predictions, whole or not at all: as CSV or Parquet by the suffix, or as JSON Lines.

    The columns of a table are described in `table_rows`, the other arguments in `write_table`.
    """
    if is_table(path):
        write_table(table_rows(examples, found, id_field), path, separator, mark=mark)
        return
    with whole_file(Path(path)) as file:
        for line in json_rows(examples, found):
            file.write(line.encode())


def write_rows(
    rows: Iterable[Mapping[str, Any]], path: str | Path, separator: str = ";", *, mark: bool = False
) -> None:
    """Write rows, whole or not at all: as CSV or Parquet by the suffix, or as JSON Lines.

    The other arguments are those of `write_table`.
    """
    if is_table(path):
        write_table(rows, path, separator, mark=mark)
        return
    with whole_file(Path(path)) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n")


def write_predicted_tasks(
    examples: Iterable[Example],
    found: Iterable[Prediction | Completion],
    path: str | Path,
    version: str,
    id_field: str = "id",
) -> None:
    """Write tasks of Label Studio with predictions, whole or not at all.

    The data of a task are the columns of its document. `version` names the model.
    """
    pairs = zip(examples, found, strict=True)
    tasks = (
        {
            "data": list_columns(example, id_field),
            "predictions": [
                {
                    "result": make_result(each.labels),
                    "score": each.probability,
                    "model_version": version,
                }
            ],
        }
        for example, each in pairs
    )
    with whole_file(Path(path)) as file:
        write_tasks(tasks, file)


def json_rows(
    examples: Iterable[Example], found: Iterable[Prediction | Completion]
) -> Iterator[str]:
    """Yield one line of JSON per document: its id and its prediction."""
    for example, each in zip(examples, found, strict=True):
        try:
            row = {"id": example.id, **each.as_dict()}
            yield json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"
        except ValueError as error:
            raise _no_number(example) from error


def table_rows(
    examples: Iterable[Example], found: Iterable[Prediction | Completion], id_field: str = "id"
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each document, then those of its prediction.

    Documents read with `ReadOptions(keep_columns=True)` have all their columns, others their id.
    A column of the prediction whose name the document has begins with "predicted_".
    `label_probabilities` are in the order of `labels`.

    Example:
        >>> from setrnn import Prediction
        >>> example = Example("1", "Rates rise", columns={"text": "Rates rise", "labels": "x"})
        >>> list(table_rows([example], [Prediction(("economy",), 0.8)]))[0]["predicted_labels"]
        ['economy']
    """
    for example, each in zip(examples, found, strict=True):
        row, new = list_columns(example, id_field), list_predicted(each)
        if not isfinite(each.probability):
            raise _no_number(example)
        names = {name: free_name(name, row) for name in new}
        yield row | {names[name]: value for name, value in new.items()}


def check_separator(labels: Iterable[str], separator: str) -> None:
    """Raise ConfigError if a label contains the separator of the labels in a cell."""
    separator = joining_separator(separator)
    bad = next((label for label in labels if separator in label), None)
    if bad is not None:
        raise ConfigError(
            f"The label '{bad}' contains '{separator}', which separates labels in a CSV cell. "
            "Choose another --label-separator, or write .jsonl or .parquet."
        )


def list_predicted(found: Prediction | Completion) -> dict[str, Any]:
    """Return the columns of a prediction."""
    values = found.as_dict()
    if "label_probabilities" in values:
        values["label_probabilities"] = list(values["label_probabilities"].values())
    if "shown_labels" in values:
        values["shown_labels"] = list(values["shown_labels"])
    if not values["alternatives"]:
        del values["alternatives"]
    values["notes"] = " ".join(found.notes)
    return {name: values[name] for name in COLUMNS if name in values}


def list_columns(example: Example, id_field: str = "id") -> dict[str, Any]:
    """Return the columns of a document, or its text; its id is among them."""
    row = dict(example.columns or {"text": example.text})
    if id_field not in row:
        row = {id_field: example.id, **row}
    row[id_field] = example.id  # it may have got the name of its file
    return row


def free_name(name: str, row: Collection[str]) -> str:
    """Return a name for a new column that the row does not have."""
    while name in row:
        name = f"{PREDICTED}{name}"
    return name


def _no_number(example: Example) -> ModelError:
    return ModelError(
        f"Document '{printable(example.id)}': the model gives values that are not numbers. Train "
        "or copy it again."
    )
