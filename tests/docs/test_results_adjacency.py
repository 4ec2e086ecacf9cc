"""The paper's example of labels that follow each other, and swaps in made-up predictions."""

import importlib.util
import sys
from pathlib import Path

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


def test_the_study_counts_both_systems_and_names_a_document():
    comparison, records = made_comparison(("seq2seq-rnn", "set-rnn"), 3)
    study = adjacency.Study.of(comparison, records, [sorted(row) for row in comparison.truth])
    assert study.n_popular["seq2seq-rnn"] > study.n_popular["set-rnn"] > 0
    text = study.write()
    assert study.best is not None
    assert comparison.ids[study.best.document] in text
    assert "`set-rnn`: B instead of C" in text
