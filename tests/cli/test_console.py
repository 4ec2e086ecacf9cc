import json

import pytest

from setrnn.cli.console import write_json


def test_a_json_file_has_null_for_what_is_not_a_number(tmp_path):
    nan, infinite = float("nan"), float("inf")
    values = {"a": nan, "b": [1.5, -infinite, {"c": (infinite, "x", None, True)}], "d": 3}
    write_json(tmp_path / "f.json", values)
    text = (tmp_path / "f.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "a": None,
        "b": [1.5, None, {"c": [None, "x", None, True]}],
        "d": 3,
    }
