"""Features are made from names or titles; their worth is a paired difference."""

import gzip
import importlib.util
import json
import shutil
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from made_comparison import made_comparison
from setrnn.comparison.records import Comparison, load_records
from setrnn.report.wording import format_score

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "features.py"
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


def test_a_folder_without_documents_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="has no files of JSON Lines"):
        features.main(["make", str(tmp_path), str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_other_documents_are_refused(folders):
    other, (record,) = made_comparison(("br",), 1, 50)
    other.save(folders / "other")
    record.save(folders / "other")
    with pytest.raises(SystemExit, match=r"The test documents or labels of .* differ"):
        features.main(["table", str(folders / "without"), str(folders / "other")])


@pytest.mark.parametrize("data", ["arxiv", "debtags"])
def test_the_rows_of_the_page_follow_from_the_kept_records(data, tmp_path):
    archives = {
        "without": ROOT / "docs" / "results" / data / "records.zip",
        "with": ROOT / "benchmarks" / "records" / f"features-{data}.zip",
    }
    scores: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for name, archive in archives.items():
        shutil.unpack_archive(archive, tmp_path / name)
        for record in load_records(tmp_path / name, Comparison.load(tmp_path / name)):
            for measure in features.SHOWN:
                found = record.scores["test"][record.own_rule][measure]
                scores[name, record.method, measure].append(found)
    means = {key: format_score(fmean(found), key[2]) for key, found in scores.items()}
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    methods = {method for name, method, _ in scores if name == "with"}
    assert methods >= {"br", "br-support", "pcc"}
    for method in methods:
        cells = [
            f"{means['without', method, measure]} → {means['with', method, measure]}"
            for measure in features.SHOWN
        ]
        (line,) = [
            each for each in page.splitlines() if each.startswith(f"| `{method}` | {cells[0]}")
        ]
        assert all(cell in line for cell in cells)
