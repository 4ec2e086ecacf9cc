"""What the kept records of comparisons do not hold: paths of a machine, and words of documents."""

import json
import re
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARCHIVES = sorted([*ROOT.glob("docs/results/**/records.zip"), *ROOT.glob("benchmarks/**/*.zip")])
MACHINE_PATH = re.compile(rb'["\s=](/|~/|[A-Z]:\\\\)[\w.-]+[/\\]')


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda file: str(file.relative_to(ROOT)))
def test_kept_records_name_no_machine_and_no_words(archive):
    with zipfile.ZipFile(archive) as kept:
        files = {name: kept.read(name) for name in kept.namelist() if name.endswith(".json")}
    assert files
    for name, content in files.items():
        assert not MACHINE_PATH.search(content), name
        if name.startswith("runs/"):
            assert not json.loads(content)["cases"], name  # explained documents, with their words


def test_a_path_of_a_machine_is_found():
    assert MACHINE_PATH.search(b'{"file": "/home/me/fasttext.rule-f1.jsonl"}')
    assert MACHINE_PATH.search(b'{"commands": ["setrnn compare /home/me/news/ --out x"]}')
    assert MACHINE_PATH.search(rb'{"file": "C:\\Users\\me"}')
    assert not MACHINE_PATH.search(b'{"file": "fasttext.rule-f1.jsonl", "labels": ["a/b", "/"]}')
