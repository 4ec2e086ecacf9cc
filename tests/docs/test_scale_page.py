"""The command of docs/scale.md, run as it is printed, and the files that it writes."""

import json
import re
import shlex
from pathlib import Path

from doc_pages import run_here

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
(PREDICT,) = re.findall(r"<!-- run by tests/docs/test_scale_page.py -->\n    (setrnn .*)\n", PAGE)


def test_the_folder_has_the_files_of_the_page(taggers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    taggers["br"].save("model")
    Path("in").mkdir()
    for name, n_rows in (("a", 150), ("b", 60)):
        rows = (json.dumps({"id": f"{name}{n}", "text": f"storm {n}"}) for n in range(n_rows))
        Path(f"in/{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
    run_here(shlex.split(PREDICT), monkeypatch, capsys)
    manifest = json.loads(Path("tags/manifest.json").read_text(encoding="utf-8"))
    assert [each["n_rows"] for each in manifest["parts"]] == [100, 100, 10]
    ids = [
        json.loads(line)["id"]
        for each in manifest["parts"]
        for line in (Path("tags") / each["file"]).read_text(encoding="utf-8").splitlines()
    ]
    assert ids == [f"a{n}" for n in range(150)] + [f"b{n}" for n in range(60)]
