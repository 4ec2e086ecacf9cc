"""docs/later.md names every later method, its file and its group."""

import inspect
import re
from pathlib import Path

from setrnn.methods import METHODS
from setrnn.objectives import OBJECTIVES
from setrnn.objectives.set_reward import REWARD_WEIGHT

PAGE = (Path(__file__).parents[2] / "docs/later.md").read_text(encoding="utf-8")
LATER = {name: method for name, method in METHODS.items() if method.is_later}


def file_of(objective):
    """The module of a function, or of the function that chooses an objective's orders."""
    made = OBJECTIVES[objective]
    module = inspect.getmodule(getattr(made, "choose_orders", made)).__name__
    return module.removeprefix("setrnn.").replace(".", "/") + ".py"


def test_each_method_is_in_the_file_that_the_page_names():
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \|.*\| `(\S+)` \|$", PAGE, re.MULTILINE))
    assert rows == {name: file_of(method.objective) for name, method in LATER.items()}


def test_each_method_is_described_with_what_is_left_out():
    for name in LATER:
        _, text = PAGE.split(f"**`{name}`:")
        assert "- Included:" in text.split("**`")[0]
        assert "- Not included:" in text.split("**`")[0]


def test_the_weight_of_the_reward_is_that_of_the_page():
    assert "λ = 1/2" in PAGE
    assert "λ = 1/2" in METHODS["seq2set-rnn"].training
    assert REWARD_WEIGHT == 1 / 2
