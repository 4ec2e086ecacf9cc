import json
from types import SimpleNamespace

import pytest

from setrnn.cli.console import write_json
from setrnn.cli.predict import _write_rows
from setrnn.data.example import Example
from setrnn.errors import ModelError


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


def test_a_row_with_nan_is_an_error_that_names_the_document():
    found = SimpleNamespace(as_dict=lambda: {"labels": [], "probability": float("nan")})
    with pytest.raises(ModelError, match="Document 'seven'"):
        list(_write_rows([Example("seven", "a text")], [found]))
