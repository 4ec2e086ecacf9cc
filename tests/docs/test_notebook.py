"""The notebook in docs/ runs, and shows what it promises."""

import ast
import json
import warnings
from pathlib import Path

import pytest

pytest.importorskip("pandas")

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def run_cell(source, names):
    """Run the code of a cell, and return the value of its last line as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None, ""
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return value, value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What each code cell shows, by its source, and the names that are left."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    found, names = {}, {}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.chdir(tmp_path_factory.mktemp("notebook"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                assert cell["outputs"] == [], "clear the outputs before you commit"
                source = "".join(cell["source"])
                found[source] = run_cell(source, names)
    return found, names


def test_every_cell_shows_something(shown):
    found, _ = shown
    assert len(found) > 10
    assert all(html for _, html in found.values())


def test_it_shows_what_it_says(shown):
    found, names = shown
    pages = {source: html for source, (_, html) in found.items()}
    for start in ("found = model.predict_sets", "explained = "):
        (page,) = [html for source, html in pages.items() if source.startswith(start)]
        assert page.startswith("<")
        assert "sport" in page or "politics" in page or "economy" in page
    assert (names["scores"] > 0.5).all()
    assert names["search"].best_params_["settings"] == {"classical.l1": 0.1}
    assert list(names["predicted"].columns) == list(names["table"].columns)
    assert list(names["found"].to_frame().index) == list(names["test"].index[:5])
