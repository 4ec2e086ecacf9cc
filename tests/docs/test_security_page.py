"""Every promise of docs/security.md names tests, and these exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security.md").read_text(encoding="utf-8")
PROMISES = re.findall(
    r"^\| (?!promise|who |---)(.*) \|$", PAGE.partition("## What is promised")[2], re.M
)
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_every_test_that_is_named_is_there(file):
    text = (TESTS / file).read_text(encoding="utf-8")
    missing = [name for each, name in NAMED if each == file and f"def {name}(" not in text]
    assert not missing


def test_the_pinned_versions_are_looked_up_by_the_command_of_the_page():
    workflow = (TESTS.parent / ".github" / "workflows" / "audit.yml").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (pipx run pip-audit .*)$", PAGE, re.M)
    assert f"run: {command}\n" in workflow
    assert "--strict" in command, "a version that cannot be looked up is no good news"


def test_every_promise_names_a_test():
    assert PROMISES
    assert [each[:60] for each in PROMISES if "::test_" not in each] == []
