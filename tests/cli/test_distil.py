"""`setrnn distil`."""

import pytest

from small_taggers import SMALL_OVERRIDES

SETTINGS = [part for each in (*SMALL_OVERRIDES, "training.epochs=1") for part in ("--set", each)]


@pytest.fixture
def teacher(taggers, tmp_path):
    taggers["br"].save(tmp_path / "teacher")
    return tmp_path / "teacher"


def test_a_student_is_trained_shown_beside_its_teacher_and_used(setrnn, teacher, corpus, tmp_path):
    out = tmp_path / "student"
    more = ("--unlabelled", corpus / "test.jsonl", "--method", "sigmoid", "--device", "cpu")
    result = setrnn("distil", teacher, corpus, "--out", out, *more, *SETTINGS)
    assert result.code == 0, result.err
    for words in ("teacher", "student", "instance", "per second"):
        assert words in result.out
    assert "Wrote" in result.err
    assert "texts without labels: 80" in (out / "README.md").read_text()
    assert setrnn("evaluate", out, corpus).code == 0
    again = setrnn("distil", teacher, corpus, "--out", out, *more, *SETTINGS, "--resume")
    assert again.code == 0, again.err


def test_what_cannot_be_distilled_is_refused_in_one_line(setrnn, teacher, corpus, tmp_path):
    out = tmp_path / "student"
    for arguments, words in (
        ([tmp_path / "nothing", corpus, "--out", out], "nothing"),
        ([teacher, corpus, "--out", teacher], "teacher itself"),
        ([teacher, corpus, "--out", out, "--method", "pcc"], "student"),
        ([teacher, corpus, "--out", out, "--unlabelled", tmp_path / "none.jsonl"], "none.jsonl"),
        ([teacher, corpus, "--out", out, "--set", "distillation.true_share=2"], "between"),
    ):
        result = setrnn("distil", *arguments)
        assert result.code == 1
        assert words in result.error_lines[0]
        assert not out.exists()
    assert setrnn("distil", teacher, corpus).code == 2  # without --out
