"""The paper's example of labels that follow each other, and swaps in made-up predictions."""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from made_comparison import made_comparison

SCRIPT = Path(__file__).parents[2] / "docs" / "results" / "adjacency.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
adjacency = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(adjacency)

EXHIBITION, PAINTING, MODERN, BRITAIN = range(4)
# The counts of the paper: 19 and 3 times adjacent, 22 and 12 times together.
PAPERS_SETS = (
    [[MODERN, EXHIBITION]] * 19
    + [[EXHIBITION, PAINTING, MODERN]] * 3
    + [[EXHIBITION, BRITAIN]] * 3
    + [[EXHIBITION, PAINTING, BRITAIN]] * 9
)


def test_pairs_are_counted_as_in_the_paper():
    counts = adjacency.Counts.of(PAPERS_SETS)
    pairs = ((EXHIBITION, MODERN), (EXHIBITION, BRITAIN))
    assert [counts.adjacent[pair] for pair in pairs] == [19, 3]
    assert [counts.together[pair] for pair in pairs] == [22, 12]
    assert counts.bias(EXHIBITION, MODERN, BRITAIN) > 1


def test_a_swap_is_found_in_both_directions():
    counts = adjacency.Counts.of(PAPERS_SETS)
    right, wrong = [EXHIBITION, BRITAIN], [EXHIBITION, MODERN]
    swaps = list(adjacency.list_swaps([right, wrong, right], [wrong, right, right], counts))
    assert [(each.document, each.is_popular) for each in swaps] == [(0, True), (1, False)]
    assert {(each.a, each.b, each.c) for each in swaps} == {(EXHIBITION, MODERN, BRITAIN)}


def test_the_study_counts_both_systems_and_names_a_document():
    comparison, records = made_comparison(("seq2seq-rnn", "set-rnn"), 3)
    study = adjacency.Study.of(comparison, records, [sorted(row) for row in comparison.truth])
    assert study.n_popular["seq2seq-rnn"] > study.n_popular["set-rnn"] > 0
    text = study.write()
    assert study.best is not None
    assert comparison.ids[study.best.document] in text
    assert "`set-rnn`: B instead of C" in text


def test_only_training_documents_are_counted_where_a_valid_part_was_cut(tmp_path):
    for part, n_documents in (("train", 40), ("test", 5)):
        rows = [{"text": f"{part} {number}", "labels": ["a", "b"]} for number in range(n_documents)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{part}.jsonl").write_text(lines, encoding="utf-8")
    counts = []
    for is_cut in (False, True):
        comparison = SimpleNamespace(valid_is_cut=is_cut, labels=("a", "b"))
        counts.append(len(list(adjacency.read_train_sets(comparison, str(tmp_path)))))
    assert counts[0] == 40 > counts[1]


def test_sections_of_other_comparisons_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(adjacency, "HERE", tmp_path)
    (tmp_path / "adjacency.md").write_text("# Title\n\n## other, preset paper\n\nAs before.\n")
    comparison, records = made_comparison(("seq2seq-rnn", "set-rnn"), 2)
    comparison.save(tmp_path / "compared")
    for record in records:
        record.save(tmp_path / "compared")
    sets = [sorted(row) for row in comparison.truth]
    monkeypatch.setattr(adjacency, "read_train_sets", lambda *_: sets)
    adjacency.main([f"{tmp_path / 'compared'}=news"])
    page = (tmp_path / "adjacency.md").read_text()
    assert page.startswith(adjacency.INTRODUCTION)
    assert list(adjacency.read_sections(page)) == [
        "## news, preset default",
        "## other, preset paper",
    ]
    assert "As before." in page
    with pytest.raises(SystemExit, match="COMPARISON=DATA"):
        adjacency.main([])
