"""The commands and the Python of docs/sharing.md, run as they are printed, on a stand-in hub."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from doc_pages import run_here

PAGE = (Path(__file__).parents[2] / "docs" / "sharing.md").read_text(encoding="utf-8")
MARK = "<!-- run by tests/docs/test_sharing_page.py -->\n"
COMMANDS = "".join(re.findall(MARK + r"((?:    setrnn .*\n)+)", PAGE)).splitlines()
(SHARING,) = re.findall(MARK + r"```python\n(.*?)```", PAGE, re.S)


@pytest.fixture
def place(taggers, tmp_path, monkeypatch):
    """A folder with models and texts."""
    monkeypatch.chdir(tmp_path)
    taggers["br"].save(tmp_path / "model")
    for name in ("news", "mail"):
        shutil.copytree(tmp_path / "model", tmp_path / name)
    (tmp_path / "texts.jsonl").write_text('{"text": "The storm stopped the ski race."}\n')
    return tmp_path


def test_the_commands_do_what_the_page_says(place, hub, monkeypatch, capsys):
    said = {}
    for line in COMMANDS:
        words = shlex.split(line, comments=True)
        found = run_here(words, monkeypatch, capsys)
        said[" ".join(words[1:])] = found.out + found.err
    assert json.loads((place / "tagged.jsonl").read_text())["labels"]
    assert set(hub.repositories) == {"me/news", "me/drafts", "me/mail"}
    assert hub.repositories["me/drafts"].private
    assert hub.repositories["me/drafts"].messages == ["Trained on all of May"]
    assert "v1" in hub.repositories["me/news"].tags
    assert b"license: mit" in hub.repositories["me/news"].files["README.md"]
    assert "public" in said["push model hub:me/news --license mit"]
    for name in ("copies/news", "fetched/news", "fetched/mail"):
        assert (place / name / "config.json").is_file()


def test_the_python_runs(place, hub):
    names = {}
    exec(SHARING, names)
    assert names["address"] == f"{hub.address}/me/news"
    assert names["labels"]
