"""`setrnn predict`: known labels in bad rows, and groups of labels."""

import json
from dataclasses import replace

import pytest

from json_lines import read_rows, write_rows

FIELDS = ("--present-field", "right", "--absent-field", "wrong")


@pytest.mark.parametrize(
    ("present", "absent", "said"),
    [
        (["footbal"], [], "in.jsonl line 2: the model has no label 'footbal'. Did you mean"),
        ("football", [], "in.jsonl line 2: 'right' must be a list of strings"),
        (["football", "markets"], [], "line 2: 2 labels are present, but the model's sets have at"),
    ],
)
def test_bad_rows_are_named_with_their_line_or_skipped(
    setrnn, taggers, tmp_path, present, absent, said
):
    model, file, out = tmp_path / "model", tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    tagger = taggers["set-rnn"]
    settings = replace(tagger.config.model, max_labels=1)
    replace(tagger, config=replace(tagger.config, model=settings)).save(model)
    rows = [(["football"], []), (present, absent), ([], [])]
    write_rows(file, ({"text": "a", "right": one, "wrong": other} for one, other in rows))
    result = setrnn("predict", model, file, "--out", out, *FIELDS)
    assert result.code == 1
    (line,) = result.error_lines
    assert said in line
    assert not out.exists()
    result = setrnn("predict", model, file, "--out", out, "--on-bad-row", "skip", *FIELDS)
    assert result.code == 0, result.err
    assert [row["id"] for row in read_rows(out)] == ["in-1", "in-3"]


def test_groups_bound_the_sets_of_predict_evaluate_and_explain(setrnn, taggers, tmp_path):
    model, file, groups = tmp_path / "model", tmp_path / "in.jsonl", tmp_path / "groups.csv"
    taggers["set-rnn"].save(model)
    pair = taggers["set-rnn"].labels.names[:2]
    groups.write_text("label,group,rule,n\n" + "".join(f"{each},kind,exactly,1\n" for each in pair))
    write_rows(file, [{"text": "The cup final", "labels": [*pair]}] * 3)
    said = setrnn("predict", model, file, "--out", tmp_path / "out.jsonl", "--groups", groups)
    assert said.code == 0, said.err
    assert all(len({*pair} & {*row["labels"]}) == 1 for row in read_rows(tmp_path / "out.jsonl"))
    found = {}
    for command in (["evaluate", model, file], ["explain", model, "--text", "The cup final"]):
        said = setrnn(*command, "--groups", groups, "--json", tmp_path / "found.json")
        assert said.code == 0, said.err
        found |= json.loads((tmp_path / "found.json").read_text())
    assert found["subset_accuracy"] == 0  # the true sets have both labels
    assert len({*pair} & {*found["sets"][0]["labels"]}) == 1


def test_info_writes_groups_that_predict_reads(setrnn, tmp_path):
    rows = [{"text": "t", "labels": [("news", "blog")[n % 2], f"topic {n}"]} for n in range(80)]
    write_rows(tmp_path / "train.jsonl", rows)
    said = setrnn("data", "info", tmp_path, "--write-groups", tmp_path / "groups.csv")
    assert "1 group of labels that never meet, a start for --groups: blog, news." in said.out
    assert (tmp_path / "groups.csv").read_text().splitlines()[1:] == [
        "blog,group 1,exactly,1",
        "news,group 1,exactly,1",
    ]
