"""The example of docs/sets.md gives the numbers of the page, and those of the figures."""

import re

from doc_pages import ROOT, load_script

DOCS = ROOT / "docs"
PAGE = (DOCS / "sets.md").read_text(encoding="utf-8")
concepts = load_script(DOCS / "make_concepts.py")


def test_the_page_shows_what_its_code_prints(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(code, {})
    printed = capsys.readouterr().out.splitlines()
    assert "\n".join(f"    {line}" for line in printed) in PAGE


def test_the_rules_choose_the_sets_of_the_figure():
    names = concepts.example()
    scores, figure = concepts.score_sets(names), (DOCS / "rules.svg").read_text()
    assert all(f"> {value:.3f}<" in figure for each in scores.values() for value in each.values())
    best = {rule: "".join(sorted(max(each, key=each.get))) for rule, each in scores.items()}
    assert best == {
        "sequence": "storm",
        "set": "cupsport",
        "f1": "cupsportstorm",
        "hamming": "sport",
    }
    likely = {
        label: sum(p for each, p in names["sets"].items() if label in each)
        for label in concepts.LABELS
    }
    assert [label for label, p in likely.items() if p > 0.5] == ["sport"]
    assert f"more likely than not ({likely['sport']:.3f})" in (DOCS / "rules.md").read_text()
