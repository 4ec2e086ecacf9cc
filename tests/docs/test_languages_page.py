"""The commands of docs/languages.md, run as they are printed, and what the page promises."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

from doc_pages import run_here

from setrnn.tagging.loading import load

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "languages.md").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"<!-- run by tests/docs/test_languages_page.py -->\n((?:    .*\n)+)", PAGE)


def test_a_table_in_four_languages_becomes_models(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS / "languages" / "notices.csv", tmp_path)
    said, labels = {}, []
    for line in BLOCK.splitlines():
        printed = run_here(shlex.split(line), monkeypatch, capsys)
        command = sys.argv[1]
        said[command] = printed.out + printed.err
        if command == "predict":
            labels += [set(json.loads(row)["labels"]) for row in printed.out.splitlines()]
    assert "several (" in said["data"]
    assert "no stop words are removed" in said["train"]
    assert labels[:2] == [{"traffic"}, {"health"}]
    assert {"weather", "traffic"} == labels[2] == labels[3]
    assert "学" in said["explain"]
    assert load(tmp_path / "model").config.text.language == "none"
