"""Exports of Label Studio, and tasks for it."""

import json
from contextlib import suppress
from xml.etree import ElementTree

import pytest

from reading import read_bytes
from setrnn.data.example import Example
from setrnn.data.read import BadRows, open_dataset, write_examples
from setrnn.data.read.label_studio import write_label_config, write_tasks
from setrnn.errors import DataError


def result(*labels, name="topics", kind="choices"):
    value = {"choices": list(labels)} if kind == "choices" else {"text": ["x"]}
    return {"id": "Dx_aB", "from_name": name, "to_name": "text", "type": kind, "value": value}


def annotation(*results, **more):
    given = {"id": 1001, "completed_by": 10, "was_cancelled": False, "ground_truth": False}
    return {**given, "created_at": "2021-03-09T22:16:08Z", "result": list(results), **more}


def task(*annotations, number=1, **data):
    return {
        "id": number,
        "data": {"text": "A storm", **data},
        "annotations": list(annotations),
        "predictions": [{"model_version": "m", "score": 0.4, "result": [result("predicted")]}],
    }


def read(tmp_path, tasks, bad_rows=None, **options):
    return read_bytes(tmp_path, json.dumps(tasks).encode(), "export.json", bad_rows, **options)


def labels_of(tmp_path, *annotations, **options):
    (found,) = read(tmp_path, [task(*annotations)], **options)
    return found.labels


def test_the_choices_of_an_annotation_are_the_labels(tmp_path):
    (found,) = read(tmp_path, [task(annotation(result("sport", "storm")))])
    assert found == Example("1", "A storm", ("sport", "storm"))
    other = task(annotation(result("a"), result("note", kind="textarea")), id="x", body="B")
    (found,) = read(tmp_path, [other], text_field="text,body")
    assert found == Example("x", "A storm\nB", ("a",))


def test_several_annotators_decide_by_majority_and_ground_truth_alone(tmp_path):
    votes = [annotation(result("a", "b")), annotation(result("a")), annotation(result("c"))]
    assert labels_of(tmp_path, *votes) == ("a",)
    assert labels_of(tmp_path, *votes[:2]) == ("a",)
    assert labels_of(tmp_path, *votes, annotation(result("d"), ground_truth=True)) == ("d",)
    assert labels_of(tmp_path, *votes[2:], annotation(result("x"), was_cancelled=True)) == ("c",)
    assert labels_of(tmp_path, annotation()) == ()


def test_tasks_without_an_annotation_are_left_out_unless_labels_are_not_needed(tmp_path):
    tasks = [task(annotation(result("a"))), task(), task(annotation(was_cancelled=True))]
    bad_rows = BadRows()
    assert len(read(tmp_path, tasks, bad_rows)) == 1
    assert "2 tasks have no annotation" in bad_rows.notes[0]
    with pytest.raises(DataError, match="none of its 2 tasks"):
        read(tmp_path, tasks[1:])
    assert [each.labels for each in read(tmp_path, tasks, require_labels=False)] == [
        ("a",),
        (),
        (),
    ]


def test_one_of_several_tags_is_named(tmp_path):
    both = annotation(result("a"), result("good", name="mood"))
    with pytest.raises(DataError, match=r"mood, topics.*--labels-field"):
        labels_of(tmp_path, both)
    assert labels_of(tmp_path, both, labels_field="mood") == ("good",)
    with pytest.raises(DataError, match=r"topics.*--labels-field"):
        labels_of(tmp_path, annotation(result("a")), labels_field="mood")
    with pytest.raises(DataError, match="no choices in its annotations"):
        labels_of(tmp_path, annotation(result("x", kind="textarea")))
    tasks = [task(annotation(result("a"))), task(annotation(result("good", name="mood")))]
    found = read(tmp_path, tasks, labels_field="topics")
    assert [each.labels for each in found] == [("a",), ()]


def test_annotators_who_agree_on_nothing_leave_the_labels_unknown(tmp_path):
    tasks = [
        task(annotation(result("a")), annotation(result("b"))),
        task(annotation(result("a")), annotation()),  # one of two says that no label applies
    ]
    bad_rows = BadRows()
    assert [each.labels for each in read(tmp_path, tasks, bad_rows)] == [()]
    assert "agree on no label" in bad_rows.notes[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}", "list of tasks"),
        (b"[1]", "task 1"),
        (b'[{"id": 1, "text": "A", "topics": {"choices": ["a"]}}]', "as JSON, not as JSON-MIN"),
        (b'[{"data": {"text": 5}, "annotations": [{"result": []}]}]', "must be a string"),
        (b'[{"data": {"body": "x"}, "annotations": [{"result": []}]}]', "--text-field"),
        (b'[{"data": {"text": "x"}', "not one JSON value"),
        (b'{"text": "a"}\n{"text": "b"}\n', "JSON Lines end in .jsonl"),
        (b"[" * 100_000, "not one JSON value"),
        (b"\xff\xfe\xfa", "export.json"),
        (b"[]", "no documents"),
        (b'[{"data": {"text": "x"}, "annotations": [{"result": [{"type": "choices", '
         b'"from_name": "a", "value": {"choices": [3]}}]}]}]', "list of strings"),
    ],
)  # fmt: skip
def test_other_files_are_refused_in_one_line(tmp_path, content, said):
    with pytest.raises(DataError, match=said) as error:
        read_bytes(tmp_path, content, "export.json")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, [None], {"choices": {}}])
def test_values_of_other_types_are_read_as_nothing_or_refused(tmp_path, value):
    for tasks in (
        [{"data": {"text": "x"}, "annotations": value}],
        [{"data": {"text": "x"}, "annotations": [{"result": value}]}],
        [{"data": {"text": "x"}, "annotations": [{"result": [{**result(), "value": value}]}]}],
        [value],
    ):
        with suppress(DataError):
            assert all(each.labels == () for each in read(tmp_path, tasks, require_labels=False))


def test_other_json_files_in_a_folder_are_not_taken_for_exports(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\nx,y\n")
    (tmp_path / "about.json").write_text("{}")
    assert len(list(open_dataset(tmp_path).require("train").read(BadRows()))) == 1


def test_tasks_and_predictions_have_the_documented_form(tmp_path):
    write_examples([Example("7", "A storm", ("a", "b"))], tmp_path / "tasks.json")
    (written,) = json.loads((tmp_path / "tasks.json").read_text())
    assert written["data"] == {"id": "7", "text": "A storm"}
    ((chosen,),) = [each["result"] for each in written["annotations"]]
    assert chosen == {
        "from_name": "labels",
        "to_name": "text",
        "type": "choices",
        "value": {"choices": ["a", "b"]},
    }
    with (tmp_path / "none.json").open("wb") as file:
        assert write_tasks([], file) == 0
    assert json.loads((tmp_path / "none.json").read_text()) == []


def test_the_label_config_is_xml_with_all_labels():
    labels = ['a "b"', "<c> & d", "é'"]
    root = ElementTree.fromstring(write_label_config(labels))
    assert [each.get("value") for each in root.iter("Choice")] == labels
