"""The tests that docs/security.md names exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_every_test_that_is_named_is_there(file):
    text = (TESTS / file).read_text(encoding="utf-8")
    missing = [name for each, name in NAMED if each == file and f"def {name}(" not in text]
    assert not missing
