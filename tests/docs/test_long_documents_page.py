"""The commands of docs/long-documents.md, run as they are printed, on documents that are cut."""

import json
import re
import shlex
from pathlib import Path

from doc_pages import run_here

PAGE = (Path(__file__).parents[2] / "docs" / "long-documents.md").read_text(encoding="utf-8")
BLOCK = re.search(r"<!-- run by tests/docs/test_long_documents_page.py -->\n((?:    .*\n)+)", PAGE)
SMALL = {
    "vectors": {"source": "none", "dimensions": 8},
    "model": {"encoder_units": 8, "decoder_units": 8, "wide": "off"},
    "search": {"beam_width": 2},
    "training": {"epochs": 1},
}


def test_what_is_cut_is_said_and_windows_read_more(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SETRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("small.json").write_text(json.dumps(SMALL))
    Path("news").mkdir()
    texts = ["rain in the valley", "budget " * 1_700, "goal " * 60, "court " * 9_000]
    for part, n in (("train", 12), ("valid", 4)):
        rows = ({"text": texts[each % 4], "labels": [f"label {each % 4}"]} for each in range(n))
        Path("news", f"{part}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("new.jsonl").write_text("".join(f"{json.dumps({'text': text})}\n" for text in texts))
    said = []
    for line in BLOCK[1].splitlines():
        command = shlex.split(line, comments=True)
        command += ["--config", "small.json"] if command[1] == "train" else []
        printed = run_here(command, monkeypatch, capsys)
        said.append(printed.err)
    assert "500 words: 50.0% of train, 50.0% of valid" in said[0]
    assert "2,000 words: 25.0% of train, 25.0% of valid" in said[1]
    rows = [json.loads(line) for line in Path("tags.jsonl").read_text().splitlines()]
    notes = [row.get("notes", []) for row in rows]
    assert notes[:3] == [[], [], []]
    assert "2,000 of its 9,000 words" in notes[3][0]
