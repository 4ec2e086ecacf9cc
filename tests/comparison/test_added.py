"""Predictions of other tools, matched with the test documents."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from made_comparison import made_comparison
from setrnn.comparison.added import make_added_record, parse_additions
from setrnn.comparison.records import GIVEN
from setrnn.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def comparison():
    return made_comparison(("br",), n_documents=20)[0]


def right_rows(comparison):
    """The rows of a tool that is always right."""
    return [
        {"id": each, "labels": [comparison.labels[label] for label in labels]}
        for each, labels in zip(comparison.ids, comparison.truth, strict=True)
    ]


def without(key, rows):
    return [{name: value for name, value in row.items() if name != key} for row in rows]


def written(rows, file):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    opened = gzip.open if file.name.endswith(".gz") else open
    with opened(file, "wt", encoding="utf-8") as stream:
        stream.write(text)
    return file


@pytest.fixture
def file(tmp_path):
    return tmp_path / "predictions.jsonl"


def test_predictions_that_are_all_right_score_one(comparison, file):
    record = make_added_record(comparison, "oracle", written(right_rows(comparison), file))
    assert record.test.predicted == {GIVEN: comparison.truth}
    assert record.own_rule == GIVEN
    assert record.is_added
    assert record.costs is None
    scores = record.scores["test"][GIVEN]
    assert scores["instance_f1"] == scores["micro_f1"] == scores["subset_accuracy"] == 1.0
    assert scores["hamming_loss"] == 0.0


def test_rows_may_stand_in_any_order_and_labels_repeat(comparison, file):
    rows = [{**row, "labels": row["labels"] * 2} for row in right_rows(comparison)]
    record = make_added_record(comparison, "x", written(rows[::-1], file))
    assert record.test.predicted[GIVEN] == comparison.truth


def test_rows_without_ids_are_matched_in_order(comparison, file):
    rows = without("id", right_rows(comparison))
    assert make_added_record(comparison, "x", written(rows, file)).test.predicted[GIVEN] == (
        comparison.truth
    )
    written(rows[:-1], file)
    with pytest.raises(DataError, match=r"19 rows without an id.* 20 test"):
        make_added_record(comparison, "x", file)


def test_probabilities_are_kept_and_measured(comparison, file):
    rows = [{**row, "probability": 0.75} for row in right_rows(comparison)]
    record = make_added_record(comparison, "x", written(rows, file))
    assert record.test.probability == {GIVEN: [0.75] * 20}
    assert record.scores["test"][GIVEN]["calibration_error"] == pytest.approx(0.25)


def changed(rows, number, **values):
    return [{**row, **values} if index == number else row for index, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[2:], r'2 ids .* no row, such as "doc-0", "doc-1"'),
        (lambda rows: [*rows, rows[4]], r'1 ids .* twice, such as "doc-4"'),
        (
            lambda rows: [{**row, "id": f"x-{row['id']}"} for row in rows],
            r'20 ids .*no test document, such as "x-doc-0", "x-doc-1", "x-doc-2"',
        ),
        (lambda rows: changed(rows, 3, id=None), r"1 rows without an id among 20"),
        (lambda rows: changed(rows, 3, id=1.5), r"line 4: 'id' must be"),
        (lambda rows: without("labels", rows), r"line 1: has no 'labels'"),
        (lambda rows: changed(rows, 3, labels=None), r"line 4: has no 'labels'"),
        (lambda rows: changed(rows, 3, labels="oil"), r'line 4: .*"oil".*\["oil"\]'),
        (lambda rows: changed(rows, 3, labels=[1]), r"line 4: 'labels' must be"),
        (lambda rows: changed(rows, 3, probability=0.5), "'probability' in some rows"),
        (lambda rows: changed(rows, 3, probability=1.5), r"line 4: 'probability' must be"),
        (lambda rows: changed(rows, 3, probability=True), r"line 4: 'probability' must be"),
        (
            lambda rows: changed(changed(rows, 3, labels=["Sport"]), 1, labels=["storms", "xyz"]),
            r'line 2: .*label "storms".*Did you mean \'storm\'',
        ),
        (lambda rows: [], "no predictions"),
        (lambda rows: [rows], "line 1: .*JSON object"),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_one_line(comparison, file, change, message):
    written(change(right_rows(comparison)), file)
    with pytest.raises(DataError, match=message) as refused:
        make_added_record(comparison, "x", file)
    assert "\n" not in str(refused.value)
    assert "predictions.jsonl" in str(refused.value)


def test_test_documents_that_share_ids_are_matched_in_order_only(comparison, file):
    twins = replace(comparison, ids=("twin", "twin", *comparison.ids[2:]))
    rows = right_rows(twins)
    assert make_added_record(twins, "x", written(rows, file)).test.predicted[GIVEN] == twins.truth
    written([*rows[2:], rows[0]], file)
    with pytest.raises(DataError, match="shared by"):
        make_added_record(twins, "x", file)


def test_name_and_file_are_taken_apart_at_the_first_sign():
    assert parse_additions(["fast text=a=b.jsonl"]) == {"fast text": Path("a=b.jsonl")}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["predictions.jsonl"], "must be NAME=FILE"),
        (["name="], "must be NAME=FILE"),
        (["=x.jsonl"], "cannot be the name"),
        (["BR=x.jsonl"], "is a method of setrnn"),
        (["../x=x.jsonl"], "cannot be the name"),
        (["a\nb=x.jsonl"], r"'a\\nb' cannot be the name"),
        ([".hidden=x.jsonl"], "cannot be the name"),
        ([f"{'a' * 200}=x.jsonl"], "cannot be the name"),
        (["x=a.jsonl", "X=b.jsonl"], "two runs with one name"),
    ],
)
def test_names_that_cannot_be_used_are_refused(texts, message):
    with pytest.raises(ConfigError, match=message) as refused:
        parse_additions(texts)
    assert "\n" not in str(refused.value)
