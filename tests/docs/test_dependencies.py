"""docs/tour.md names what pyproject.toml installs, and the package imports nothing else."""

import ast
import re
import sys
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8").partition("## Dependencies")[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ALWAYS, EXTRAS = PAGE.split("### Extras")
# Imported by another name than that of the package.
IMPORTED_AS = {"scikit-learn": "sklearn"}
# What comes with a dependency, or is used only if it is there; the page says so.
OTHERS = {"markupsafe", "fsspec", "starlette", "pydantic", "anyio", "pandas"}
TREES = {
    file: ast.parse(file.read_text(encoding="utf-8"))
    for file in (ROOT / "src" / "setrnn").rglob("*.py")
}


def name_of(requirement):
    return re.match(r"[\w.-]+", requirement)[0]


def list_imports(tree):
    """Yield the modules and names that a file imports from elsewhere, those of types too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def is_foreign(module):
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and top not in ("setrnn", "__future__")


def test_the_tables_name_exactly_the_dependencies():
    named = re.findall(r"^\| `([\w-]+)` \|", ALWAYS, re.M)
    assert named == [name_of(each) for each in PROJECT["dependencies"]]
    expected = [
        (name_of(each), extra)
        for extra, requirements in PROJECT["optional-dependencies"].items()
        if extra != "dev"
        for each in requirements
    ]
    assert sorted(re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|", EXTRAS, re.M)) == sorted(expected)


def test_the_package_imports_only_what_the_page_names():
    named = {IMPORTED_AS.get(each, each) for each in re.findall(r"^\| `([\w-]+)` \|", PAGE, re.M)}
    known = {each.replace("-", "_") for each in named} | OTHERS
    known |= {"pydantic_core", "typing_extensions"}  # parts of pydantic and of types
    found = {
        module.partition(".")[0]
        for tree in TREES.values()
        for module in list_imports(tree)
        if is_foreign(module)
    }
    assert found - known == set()
    assert all(f"`{each}`" in PAGE for each in OTHERS)


def test_only_public_names_of_other_libraries_are_used():
    private = []
    for file, tree in TREES.items():
        foreign = [each for each in list_imports(tree) if is_foreign(each)]
        private += [(file.name, each) for each in foreign if "._" in each]
        modules = {each.partition(".")[0] for each in foreign} | {"np", "sp", "pa", "pq", "mpl"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                base = ast.unparse(node.value).partition(".")[0]
                if base in modules and not node.attr.startswith("__"):
                    private.append((file.name, ast.unparse(node)))
    assert private == []
