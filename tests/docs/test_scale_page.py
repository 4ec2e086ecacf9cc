"""The commands of docs/scale.md, run as they are printed, and the files that they write."""

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
from doc_pages import run_here

import setrnn

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
PREDICT, PREPARE = re.findall(
    r"<!-- run by tests/docs/test_scale_page.py -->\n    (setrnn .*)\n", PAGE
)


@pytest.fixture
def two_inputs(taggers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taggers["br"].save("model")
    Path("in").mkdir()
    for name, n_rows in (("a", 150), ("b", 60)):
        rows = (json.dumps({"id": f"{name}{n}", "text": f"storm {n}"}) for n in range(n_rows))
        Path(f"in/{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")


@pytest.fixture
def run(monkeypatch, capsys):
    def call(command):
        printed = run_here(shlex.split(command), monkeypatch, capsys)
        return printed.out.strip()

    return call


@pytest.mark.usefixtures("two_inputs")
def test_the_folder_has_the_files_of_the_page(run):
    run(PREDICT)
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


def test_files_are_prepared_side_by_side(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name in "ab":
        rows = [json.dumps({"id": f"{name}{n}", "text": "rain", "labels": [name]}) for n in "123"]
        with gzip.open(f"in/{name}.jsonl.gz", "wt") as file:
            file.write("\n".join(rows))
    prepared = setrnn.Prepared(Path(run(PREPARE)))
    assert prepared.split("train").ids(0, 6) == ["a1", "a2", "a3", "b1", "b2", "b3"]
    alone = setrnn.prepare("in/*.jsonl.gz", out="alone")
    assert alone.description == prepared.description  # with the hash of every file
