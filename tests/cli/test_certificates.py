"""The rows of set-rnn-exact say what the search can say for them."""

import pytest
from json_lines import read_rows

from small_taggers import SMALL_OVERRIDES


@pytest.fixture(scope="module")
def settings():
    return [part for each in SMALL_OVERRIDES for part in ("--set", each)]


def test_every_row_by_rule_set_has_a_certificate(setrnn, corpus, settings, tmp_path):
    model, out = tmp_path / "model", tmp_path / "out.jsonl"
    arguments = ("train", corpus, "--method", "set-rnn-exact", "--out", model, *settings)
    assert setrnn(*arguments).code == 0
    assert setrnn("predict", model, corpus / "test.jsonl", "--out", out).code == 0
    for row in read_rows(out):
        assert set(row["certificate"]) == {"proved", "pruned_mass"}
        assert isinstance(row["certificate"]["proved"], bool)
        assert 0 <= row["certificate"]["pruned_mass"] <= 1
    evaluated = setrnn("evaluate", model, corpus)
    assert "of the predictions are proved" in " ".join(evaluated.out.split())
