from dataclasses import replace
from pathlib import Path

from made_comparison import made_comparison
from setrnn.comparison.compare import ComparisonResult
from setrnn.training.pool import Failure


def test_a_comparison_shows_its_scores_and_failures_in_a_notebook():
    comparison, records = made_comparison(("br", "set-rnn"), n_seeds=1)[:2]
    result = ComparisonResult(Path("out"), comparison, records)
    page = result._repr_html_()
    for method, scores in result.mean_scores().items():
        assert method in page
        assert f"{scores['label_f1']:.3f}" in page
    failure = Failure("MemoryError", "<b>no memory</b>")
    failed = replace(result, records=[*records[:1], replace(records[1], failure=failure)])
    page = failed._repr_html_()
    assert "&lt;b&gt;no memory" in page
    assert "set-rnn" in page
