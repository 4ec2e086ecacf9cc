"""The commands and settings of docs/reproduce.md, and of `make reproduce`."""

import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")


def dry_run(*arguments):
    """List the commands that make would run."""
    command = ["make", "--dry-run", "--assume-old=.venv/installed", "reproduce", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [shlex.split(line) for line in done.stdout.splitlines() if "bin/setrnn" in line]


@pytest.mark.parametrize("data", ["arxiv", "debtags", "reuters21578"])
def test_make_reproduce_compares_with_the_stored_results(data):
    compare, report = dry_run(f"DATA=data/{data}/")
    assert compare[1:3] == ["compare", f"data/{data}/"]
    assert report[1:] == ["report", compare[-1], "--against", f"docs/results/{data}"]
    assert (ROOT / report[-1] / "summary.json").is_file()
