"""Predictions of other tools as rows of a comparison: `--add NAME=predictions.jsonl`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setrnn.comparison.records import GIVEN, Comparison, LabelSets, Record, TestResults
from setrnn.data.disk import file_hash
from setrnn.data.hierarchy import Hierarchy, score_in_hierarchy
from setrnn.data.read import ReadOptions
from setrnn.data.read.jsonl import parse_object
from setrnn.data.read.lines import RowProblem, numbered_lines
from setrnn.data.read.rows import id_text, strings
from setrnn.errors import ConfigError, DataError, nearest_name, printable, shown
from setrnn.methods import METHODS
from setrnn.metrics import evaluate_sets, indicator_matrix
from setrnn.tagging.trust.acceptance import reliability

MAX_SHOWN = 3  # ids per message

_NAME = re.compile(r"\w[\w .+-]{0,79}")
_ADVICE = 'Write one object per line: {"id": "...", "labels": ["..."]}.'


@dataclass(frozen=True)
class _Row:
    number: int  # of the line
    id: str | None
    labels: tuple[str, ...]
    probability: float | None


def parse_additions(texts: Sequence[str]) -> dict[str, Path]:
    """Return the files of `NAME=FILE` texts by their names.

    Example:
        >>> from setrnn.comparison.added import parse_additions
        >>> str(parse_additions(["fasttext=predictions.jsonl"])["fasttext"])
        'predictions.jsonl'
    """
    pairs = []
    for text in texts:
        name, separator, file = text.partition("=")
        if not separator or not file:
            raise ConfigError(
                f"'--add {printable(text)}' must be NAME=FILE, such as fasttext=predictions.jsonl."
            )
        pairs.append((name, Path(file)))
    check_names([name for name, _ in pairs])  # before a dict would lose one of two
    return dict(pairs)


def check_names(names: Sequence[str]) -> None:
    """Refuse names that cannot be file names or are those of methods, and two rows of one name."""
    for name in names:
        if name.casefold() in METHODS:
            raise ConfigError(
                f"'{name}' is a method of setrnn: choose another name for the row, such as "
                f"my-{name}."
            )
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"'{printable(name[:80])}' cannot be the name of a row, since a file is named "
                "after it. Begin with a letter or digit, and use at most 80 of these, spaces, '.', "
                "'+', '-' and '_'."
            )
    for name, n in Counter(each.casefold() for each in names).items():
        if n > 1:
            raise ConfigError(f"--add gives '{name}' twice: two runs with one name. Rename one.")


def make_added_record(comparison: Comparison, name: str, file: Path) -> Record:
    """Read predictions, match them with the test documents, and score them: see `check_names`.

    A label that neither train nor test has is refused, since it is usually misspelt.
    """
    rows = _match_documents(comparison, file, _read(file))
    predicted = _find_labels(comparison, file, rows)
    probability = [row.probability for row in rows if row.probability is not None]
    if 0 < len(probability) < len(rows):
        raise DataError(f"{file} has a 'probability' in some rows only. Give all one, or none.")
    probabilities = {GIVEN: probability} if probability else {}
    return Record(
        method=name,
        seed=0,
        data_hash=comparison.data_hash,
        own_rule=GIVEN,
        treatment={"file": str(file), "file_hash": file_hash(file)},
        scores={"test": {GIVEN: _score(comparison, predicted, probability)}},
        test=TestResults({GIVEN: predicted}, probabilities),
        is_added=True,
    )


def _read(file: Path) -> list[_Row]:
    max_bytes, rows = ReadOptions().max_row_bytes, list[_Row]()
    for number, line in numbered_lines(file, max_bytes):
        try:
            if (values := parse_object(line, max_bytes, _ADVICE)) is not None:
                rows.append(_parse_row(values, number))
        except RowProblem as problem:
            raise DataError(f"{printable(file.name)} line {number}: {problem}") from None
    if not rows:
        raise DataError(f"{file} holds no predictions. {_ADVICE}")
    return rows


def _parse_row(values: Mapping[str, Any], number: int) -> _Row:
    given_id, probability = values.get("id"), values.get("probability")
    if values.get("labels") is None:
        raise RowProblem("has no 'labels'. Add them; write [] for none.")
    if probability is not None and not (
        type(probability) in (int, float) and 0 <= probability <= 1
    ):
        raise RowProblem(
            f"'probability' must be between 0 and 1, got {shown(probability)}. Leave it out if "
            "it is not known."
        )
    return _Row(
        number,
        None if given_id is None else id_text("id", given_id),
        tuple(dict.fromkeys(strings("labels", values["labels"]))),
        None if probability is None else float(probability),
    )


def _match_documents(comparison: Comparison, file: Path, rows: list[_Row]) -> list[_Row]:
    """Return the rows in the order of the test documents."""
    given, wanted = [row.id for row in rows], comparison.ids
    if given in (list(wanted), [None] * len(wanted)):
        return rows
    if None in given:
        raise DataError(
            f"{file} has {given.count(None):,} rows without an id among {len(rows):,}, and there "
            f"are {len(wanted):,} test documents. Give every row the id of its document, or one "
            "row per document, in their order, without ids."
        )
    by_id = {str(row.id): row for row in rows}
    n_wanted, n_given = Counter(wanted), Counter(str(each) for each in given)
    problems = {
        "are shared by test documents": [each for each, n in n_wanted.items() if n > 1],
        "are in it twice": [each for each, n in n_given.items() if n > 1],
        "are those of no test document": [each for each in by_id if each not in n_wanted],
        "of test documents have no row": [each for each in wanted if each not in by_id],
    }
    for what, ids in problems.items():
        if ids:
            some = ", ".join(map(shown, ids[:MAX_SHOWN]))
            raise DataError(
                f"{file} does not match: {len(ids):,} ids {what}, such as {some}. Give one row for "
                "each test document, with its id; or all in their order, without ids."
            )
    return [by_id[each] for each in wanted]


def _find_labels(comparison: Comparison, file: Path, rows: Sequence[_Row]) -> LabelSets:
    index = {label: number for number, label in enumerate(comparison.labels)}
    unknown = [(row.number, label) for row in rows for label in row.labels if label not in index]
    if unknown:
        number, label = min(unknown)
        raise DataError(
            f"{file} line {number}: neither train nor test has the label {shown(label)}. "
            f"{printable(nearest_name(label, comparison.labels))} Spell it as the data does, or "
            "leave it out."
        )
    return [sorted(index[label] for label in row.labels) for row in rows]


def _score(
    comparison: Comparison, predicted: LabelSets, probability: Sequence[float]
) -> dict[str, Any]:
    truth, sets = (
        indicator_matrix(rows, comparison.n_labels) for rows in (comparison.truth, predicted)
    )
    scores = {"rule": GIVEN, **evaluate_sets(truth, sets).as_dict()}
    if comparison.parents is not None:
        tree, names = Hierarchy(comparison.parents), comparison.labels
        both = (comparison.truth, predicted)
        named = ([[names[label] for label in row] for row in rows] for rows in both)
        scores |= asdict(score_in_hierarchy(tree, *named))
    if not probability:
        return scores
    pairs = zip(comparison.truth, predicted, strict=True)
    is_right = np.array([set(true) == set(row) for true, row in pairs])
    error = reliability(np.array(probability), is_right).error
    return {
        **scores,
        "mean_probability": float(np.mean(probability)),
        "calibration_error": error,
        "calibration_error_raw": error,
    }
