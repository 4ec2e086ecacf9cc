"""README, the tour and the import contract show one and the same map of the package."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def layers_of_contract():
    """The layers of pyproject.toml, each as a set of names; without __main__."""
    text = (ROOT / "pyproject.toml").read_text()
    block = re.search(r"^layers = \[(.*?)^\]", text, re.S | re.M).group(1)
    layers = [set(re.findall(r"setrnn\.(\w+)", line)) for line in block.splitlines()]
    return [layer for layer in layers if layer and layer != {"__main__"}]


def layers_of_document(name):
    """The layers of the first indented map that begins with cli."""
    text = (ROOT / name).read_text()
    block = re.search(r"^    cli *->.*?(?=\n\n)", text, re.S | re.M).group(0)
    return [set(re.findall(r"\w+", layer)) for layer in block.split("->")]


@pytest.mark.parametrize("name", ["README.md", "docs/tour.md"])
def test_the_map_is_that_of_the_import_contract(name):
    assert layers_of_document(name) == layers_of_contract()


def test_every_module_has_a_place_on_the_map():
    package = ROOT / "src" / "setrnn"
    found = {each.stem for each in package.iterdir() if each.suffix == ".py" or each.is_dir()}
    public = {"__init__", "scorers"}  # for users
    assert found - {*public, "__main__", "__pycache__", "py"} == set().union(*layers_of_contract())
