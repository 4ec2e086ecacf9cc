"""The command of docs/scale.md, run as it is printed, and the files that it writes."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from setrnn.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
COMMAND = re.search(r"<!-- run by tests/docs/test_scale_page.py -->\n    (setrnn .*)\n", PAGE)[1]


@pytest.fixture
def two_inputs(taggers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taggers["br"].save("model")
    Path("in").mkdir()
    for name, n_rows in (("a", 150), ("b", 60)):
        rows = (json.dumps({"id": f"{name}{n}", "text": f"storm {n}"}) for n in range(n_rows))
        Path(f"in/{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")


@pytest.mark.usefixtures("two_inputs")
def test_the_folder_has_the_files_of_the_page(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", shlex.split(COMMAND))
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code, capsys.readouterr().err
    manifest = json.loads(Path("tags/manifest.json").read_text(encoding="utf-8"))
    assert [each["n_rows"] for each in manifest["shards"]] == [100, 50, 60]
    ids = [
        json.loads(line)["id"]
        for each in manifest["shards"]
        for line in (Path("tags") / each["file"]).read_text(encoding="utf-8").splitlines()
    ]
    assert ids == [f"a{n}" for n in range(150)] + [f"b{n}" for n in range(60)]
    found = {each.name for each in Path("tags").iterdir()}
    named = re.findall(r"^\| `([a-z]+(?:\.[a-z]+)?)/?` \|", PAGE, flags=re.MULTILINE)
    assert set(named) - {"bad.jsonl"} == {each for each in found if not each.startswith("shard-")}
