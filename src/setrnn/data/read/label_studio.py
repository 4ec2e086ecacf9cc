"""Read and write the JSON of Label Studio: tasks with annotations or predictions.

A file is one list of tasks, `{"data": {...}, "annotations": [...]}`. The labels of a document are
what its annotators chose: with several annotations, those marked as ground truth count alone, and a
label needs more than half of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from setrnn.data.example import Example
from setrnn.data.read.lines import RowProblem, decode, file_stem, numbered_lines
from setrnn.data.read.reader import BadRows, Format, ReadOptions
from setrnn.data.read.rows import example_maker, read_rows, strings
from setrnn.errors import DataError, printable, shown

CHOICES = "choices"
FROM_NAME, TO_NAME = "labels", "text"  # of what we write: the names of the tags in the project
_ADVICE = "Export the project as JSON, not as JSON-MIN. JSON Lines end in .jsonl."
_WHOLE_FILE = 1 << 40  # bytes: an export is one line, and is read at once

Row = Mapping[str, Any]


def read(path: Path, options: ReadOptions, bad_rows: BadRows) -> Iterator[Example]:
    """Read the tasks of one file; those without an annotation are left out if labels are needed."""
    make = example_maker(options, file_stem(path))
    tasks = _load(path, options)
    tag = _find_tag(path, tasks, options)
    n_left_out = 0

    def make_from_task(task: Any, number: int) -> Example | None:  # noqa: ANN401 (JSON values)
        nonlocal n_left_out
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise RowProblem(f"must be an object with data, got {shown(task)}. {_ADVICE}")
        row = _flatten(task, tag, options.labels_field)
        if options.require_labels and options.labels_field not in row:
            n_left_out += 1
            return None
        return make(row, number)

    yield from read_rows(enumerate(tasks, 1), make_from_task, bad_rows, f"{path.name} task")
    if n_left_out and n_left_out == len(tasks):
        raise DataError(
            f"{path}: none of its {n_left_out:,} tasks has an annotation, or several that agree on "
            "a label. Annotate some."
        )
    if n_left_out:
        bad_rows.note(
            f"{path.name}: {n_left_out:,} tasks have no annotation, or several that agree on no "
            "label, and are left out."
        )


def _load(path: Path, options: ReadOptions) -> list[Any]:
    whole = b"".join(line for _, line in numbered_lines(path, _WHOLE_FILE, options.encoding))
    try:
        tasks = json.loads(decode(whole, _WHOLE_FILE))
    except RowProblem as problem:
        raise DataError(f"{path} {problem}") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path} is not one JSON value, or is cut short. {_ADVICE}") from None
    if not isinstance(tasks, list):
        raise DataError(f"{path} must be a list of tasks, got {shown(tasks)}. {_ADVICE}")
    return tasks


def _flatten(task: Row, tag: str | None, field: str) -> dict[str, Any]:
    """Return the data of a task as a row, with its id and the labels that its annotators chose."""
    row: dict[str, Any] = {"id": task.get("id"), **task["data"]}
    row.pop(field, None)
    annotations = _list_annotations(task)
    final = [each for each in annotations if each.get("ground_truth")] or annotations
    chosen = [_list_chosen(each, tag) for each in final]
    votes = Counter(label for each in chosen for label in each)
    agreed = [label for label, n in votes.items() if 2 * n > len(final)]
    if agreed or not all(chosen):  # everybody chose something, but not the same: no label is known
        row[field] = agreed
    return row


def _list_annotations(task: Row) -> list[Row]:
    """Return the annotations of a task that were not cancelled."""
    found = _list_of_dicts(task.get("annotations"))
    return [each for each in found if not each.get("was_cancelled")]


def _find_tag(path: Path, tasks: Sequence[Any], options: ReadOptions) -> str | None:
    """Return the tag of a project whose choices are the labels; None if nothing was chosen."""
    annotations = [a for task in tasks if isinstance(task, dict) for a in _list_annotations(task)]
    results = [each for a in annotations for each in _list_of_dicts(a.get("result"))]
    names = {str(each.get("from_name")) for each in results if each.get("type") == CHOICES}
    field = options.labels_field
    if field in names or not options.require_labels:
        return field if field in names else min(names, default=None)
    if len(names) > 1 or (names and field != ReadOptions.labels_field):
        listed = printable(", ".join(sorted(names)))
        raise DataError(f"{path} has choices of: {listed}. Name one of these with --labels-field.")
    if results and not names:
        raise DataError(f"{path} has no choices in its annotations. Labels are read from choices.")
    return next(iter(names), None)


def _list_chosen(annotation: Row, name: str | None) -> dict[str, None]:
    """Return the choices of one annotation; nothing chosen means that no label applies."""
    results = _list_of_dicts(annotation.get("result"))
    chosen = (each for each in results if each.get("type") == CHOICES)
    values = [_choices(each.get("value")) for each in chosen if each.get("from_name") == name]
    return dict.fromkeys(label for each in values for label in strings(CHOICES, each))


def _choices(value: Any) -> list[Any]:  # noqa: ANN401 (JSON values)
    found = value.get(CHOICES) if isinstance(value, dict) else None
    return found if isinstance(found, list) else [found] if found and isinstance(found, str) else []


def _list_of_dicts(values: Any) -> list[Row]:  # noqa: ANN401 (JSON values)
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def make_result(
    labels: Sequence[str], from_name: str = FROM_NAME, to_name: str = TO_NAME
) -> list[dict[str, Any]]:
    """Return the choices of an annotation or a prediction; an empty list for no label.

    Example:
        >>> make_result(["sport"])[0]["value"]
        {'choices': ['sport']}
    """
    if not labels:
        return []
    names = {"from_name": from_name, "to_name": to_name, "type": CHOICES}
    return [{**names, "value": {CHOICES: list(labels)}}]


def write_tasks(tasks: Iterable[Row], stream: BinaryIO) -> int:
    """Write tasks as one list, one task per line; return their number."""
    n_written = 0
    for task in tasks:
        line = json.dumps(task, ensure_ascii=False, default=str).encode()
        stream.write((b"[\n" if not n_written else b",\n") + line)
        n_written += 1
    stream.write(b"\n]\n" if n_written else b"[]\n")
    return n_written


def make_tasks(examples: Iterable[Example]) -> Iterator[dict[str, Any]]:
    """Yield a task per document, annotated with its labels."""
    for example in examples:
        data: dict[str, Any] = {"id": example.id, "text": example.text}
        if example.features:
            data["features"] = example.features
        yield {"data": data, "annotations": [{"result": make_result(example.labels)}]}


def write_label_config(labels: Iterable[str]) -> str:
    """Return the labeling interface of a project whose choices are these labels.

    Example:
        >>> print(write_label_config(["sport", "R&D"]))
        <View>
          <Text name="text" value="$text"/>
          <Choices name="labels" toName="text" choice="multiple">
            <Choice value="sport"/>
            <Choice value="R&amp;D"/>
          </Choices>
        </View>
    """
    from xml.sax.saxutils import quoteattr

    choices = "\n".join(f"    <Choice value={quoteattr(label)}/>" for label in labels)
    return (
        f'<View>\n  <Text name="{TO_NAME}" value="$text"/>\n'
        f'  <Choices name="{FROM_NAME}" toName="{TO_NAME}" choice="multiple">\n{choices}\n'
        "  </Choices>\n</View>"
    )


FORMAT = Format((".json",), read, fixed_names="train.json, an export of Label Studio")
