"""Predictions as rows to write: JSON objects, or the columns of the input with new ones."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from setrnn.data.disk import whole_file
from setrnn.data.example import Example
from setrnn.data.read.delimited import Dialect
from setrnn.data.read.excel import SUFFIX, import_openpyxl
from setrnn.data.read.label_studio import make_result, write_tasks
from setrnn.data.read.write import is_table, write_table
from setrnn.data.streaming import batched
from setrnn.errors import ConfigError, ModelError, printable

if TYPE_CHECKING:  # it loads SciPy, which the help of a command does not need
    from setrnn.tagging.inputs import Document
    from setrnn.tagging.prediction import Completion, Prediction
    from setrnn.tagging.tagger import Tagger

LabelColumns: TypeAlias = Literal["binary", "probability"]
SHEETS = (".csv", SUFFIX)  # for people, whose programs show cells
SHEET_DIGITS = 4  # of probabilities there
PREDICTED = "predicted_"
# Columns of a table; what else a prediction holds is only in JSON.
COLUMNS = (
    *("labels", "probability", "accepted", "label_probabilities", "accepted_labels"),
    *("shown_labels", "added", "suggestion", "known_probability", "alternatives", "notes"),
)


@dataclass(frozen=True)
class Columns:
    """The columns of a table of predictions.

    Attributes:
        id_field: the column of the id.
        digits: the digits of probabilities; None for all.
        labels: the labels that have a column.
        values: what these hold: whether the label is predicted, as 0 or 1, or its probability.
    """

    id_field: str = "id"
    digits: int | None = None
    labels: tuple[str, ...] = ()
    values: LabelColumns = "binary"

    @classmethod
    def of(
        cls, tagger: Tagger, path: str | Path, id_field: str, values: LabelColumns | None
    ) -> Columns:
        """Return the columns of a file, with one per label of a model if these have values."""
        if values is not None and not is_table(path):
            raise ConfigError("--label-columns is for a table. Name --out FILE.csv or .xlsx.")
        digits = SHEET_DIGITS if Path(path).suffix.lower() in SHEETS else None
        names = () if values is None else tagger.labels.names
        return cls(id_field, digits, names, values or "binary")

    def tag(
        self,
        tagger: Tagger,
        documents: Iterable[Document],
        **how: Any,  # noqa: ANN401 (those of `Tagger.tag_stream`)
    ) -> Iterator[Prediction]:
        """Tag documents, with the probabilities of all labels if the columns hold these."""
        if not self.labels or self.values == "binary":
            return tagger.tag_stream(documents, **how)
        return (
            replace(each, label_probabilities=dict(zip(self.labels, probs, strict=True)))
            for batch in batched(documents, tagger.batch_size)
            for each, probs in _tag_batch(tagger, batch, how)
        )

    def list_predicted(self, found: Prediction | Completion) -> Iterator[tuple[str, Any]]:
        """Yield the name and the value of each column of a prediction."""
        values = found.as_dict()
        if (digits := self.digits) is not None:
            text = json.dumps(values)
            values = json.loads(text, parse_float=lambda number: round(float(number), digits))
        probs: dict[str, float] = values.get("label_probabilities", {})
        if "label_probabilities" in values:
            values["label_probabilities"] = [probs[label] for label in found.labels]
        if "shown_labels" in values:
            values["shown_labels"] = list(values["shown_labels"])
        if not values["alternatives"]:
            del values["alternatives"]
        values["notes"] = " ".join(found.notes)
        yield from ((name, values[name]) for name in COLUMNS if name in values)
        is_binary = self.values == "binary"
        for label in self.labels:
            yield label, int(label in found.labels) if is_binary else probs[label]


def write_predictions(
    examples: Iterable[Example],
    found: Iterable[Prediction | Completion],
    path: str | Path,
    columns: Columns = Columns(),  # noqa: B008 - frozen
    dialect: Dialect = Dialect(),  # noqa: B008 - frozen
) -> None:
    """Write predictions, whole or not at all: as a table by the suffix, or as JSON Lines.

    The columns of a table are described in `table_rows`.
    """
    if is_table(path):
        write_table(table_rows(examples, found, columns), path, dialect)
        return
    with whole_file(Path(path)) as file:
        for line in json_rows(examples, found):
            file.write(line.encode())


def write_rows(
    rows: Iterable[Mapping[str, Any]],
    path: str | Path,
    dialect: Dialect = Dialect(),  # noqa: B008 - frozen
) -> None:
    """Write rows, whole or not at all: as a table by the suffix, or as JSON Lines."""
    if is_table(path):
        write_table(rows, path, dialect)
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
    examples: Iterable[Example],
    found: Iterable[Prediction | Completion],
    columns: Columns = Columns(),  # noqa: B008 - frozen
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
        row = list_columns(example, columns.id_field)
        if not isfinite(each.probability):
            raise _no_number(example)
        for name, value in columns.list_predicted(each):
            row[free_name(name, row)] = value
        yield row


def check_table(path: str | Path, labels: Iterable[str], separator: str) -> None:
    """Raise if a table cannot be written, before the work.

    That is if a label contains the separator of labels in a cell, or a library is missing.
    """
    suffix = Path(path).suffix.lower()
    if suffix == SUFFIX:
        import_openpyxl(f"Writing {path}")
    if suffix not in SHEETS:
        return
    bad = next((label for label in labels if separator in label), None)
    if bad is not None:
        raise ConfigError(
            f"The label '{bad}' contains '{separator}', which separates labels in a cell. "
            "Choose another --label-separator, or write .jsonl or .parquet."
        )


def list_columns(example: Example, id_field: str = "id") -> dict[str, Any]:
    """Return the columns of a document, or its text; its id is among them."""
    row = dict(example.columns or {"text": example.text})
    if id_field not in row:
        row = {id_field: example.id, **row}
    row[id_field] = example.id  # it may have got the name of its file
    return row


def _tag_batch(
    tagger: Tagger, batch: Sequence[Document], how: dict[str, Any]
) -> Iterator[tuple[Prediction, list[float]]]:
    """Yield each prediction with the probabilities of all labels, as JSON has them."""
    found, marginals = tagger.tag_with_marginals(batch, **how)
    for each, probs in zip(found, marginals.probs.tolist(), strict=True):
        yield each, [round(p, 6) for p in probs]  # single precision has no more


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
