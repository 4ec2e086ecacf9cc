"""`setrnn predict`: known labels in bad rows."""

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
