"""The maps of the code in README.md, CONTRIBUTING.md and docs/tour.md name what is there."""

import re

import pytest
from doc_pages import ROOT

SOURCE = ROOT / "src" / "setrnn"
FILES = [file.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*.py")]
CODE = "\n".join(file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
PAGES = ("README.md", "CONTRIBUTING.md", "docs/tour.md")


@pytest.mark.parametrize("page", PAGES)
def test_files_and_classes_of_a_map_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8").partition("## Dependencies")[0]
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    rows = "\n".join(line for line in text.splitlines() if line.startswith(("| ", "- ", "1. ")))
    files = re.findall(r"`([\w/]+\.py)`", rows)
    missing = [
        each
        for each in files
        if "NAME" not in each
        and not any(f"/{file}".endswith(f"/{each}") for file in FILES)
        and not (ROOT / each).is_file()
    ]
    assert not missing
    names = re.findall(r"`([A-Z][a-z]+[A-Za-z]*|search_\w+|most_\w+)`", rows)
    assert [each for each in names if not re.search(rf"(class|def) {each}\b", CODE)] == []
