"""Features are made from names or titles; their worth is a paired difference."""

import gzip
import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from made_comparison import made_comparison

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "features.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
features = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(features)


def test_a_name_or_a_title_becomes_features():
    assert features.list_features({"name": "libgtk2.0-dev"}) == ["libgtk", "dev"]
    assert features.list_features({"title": "The Sum of the Sum"}) == ["sum"]
    assert features.list_features({"text": "no such field"}) == []


def test_files_are_written_with_features(tmp_path):
    (tmp_path / "data").mkdir()
    row = {"name": "vim-doc", "text": "An editor.", "labels": ["doc"]}
    for file, open_file in (("train.jsonl.gz", gzip.open), ("test.jsonl", open)):
        with open_file(tmp_path / "data" / file, "wt", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        features.main(["make", str(tmp_path / "data"), str(tmp_path / "out")])
        with open_file(tmp_path / "out" / file, "rt", encoding="utf-8") as stream:
            assert json.loads(stream.readline()) == {**row, "features": ["vim", "doc"]}


@pytest.fixture
def folders(tmp_path):
    """Two comparisons: with features, br predicts every set right."""
    comparison, (br,) = made_comparison(("br",), 1, 60)
    right = replace(br.test, predicted={**br.test.predicted, "set": comparison.truth})
    for name, record in (("without", br), ("with", replace(br, test=right))):
        comparison.save(tmp_path / name)
        record.save(tmp_path / name)
    return tmp_path


def test_the_table_has_the_difference(folders, capsys):
    file = folders / "rows.json"
    features.main(["table", str(folders / "without"), str(folders / "with"), f"--json={file}"])
    row = json.loads(file.read_text())[0]
    assert row["with"] == 1
    assert row["difference"] == pytest.approx(1 - row["without"])
    assert row["p"] < 0.05
    assert "| `br` |" in capsys.readouterr().out


def test_other_documents_are_refused(folders):
    other, (record,) = made_comparison(("br",), 1, 50)
    other.save(folders / "other")
    record.save(folders / "other")
    with pytest.raises(SystemExit, match="other test documents"):
        features.main(["table", str(folders / "without"), str(folders / "other")])
