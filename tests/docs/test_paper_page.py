"""docs/paper.md: the table has the values of both presets, and names code that exists."""

import json
import re
from pathlib import Path

import pytest

from setrnn.config import PRESETS, flatten, load_config, to_dict

PAGE = Path(__file__).parents[2] / "docs" / "paper.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| .*`\w+\.\w+`", line)
]


def show(value):
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("row", ROWS, ids=[row[2].strip("`") for row in ROWS])
def test_each_choice_has_its_values_and_its_code(row):
    _, _, setting, paper, default, place = row
    for preset, value in (("paper", paper), ("default", default)):
        assert show(flatten(to_dict(load_config(preset)))[setting.strip("`")]) == value
    file, name = re.fullmatch(r"\[.*\]\((.*)\)(?: `(\w+)`)? ?\|?", place).groups()
    code = PAGE.parent / file
    assert code.exists()
    assert name is None or re.search(rf"(def|class) {name}\b", code.read_text(encoding="utf-8"))


def test_every_setting_of_the_preset_is_explained():
    named = {row[2].strip("`") for row in ROWS}
    assert not set(flatten(PRESETS["paper"])) - named
