"""The wheel alone, in an environment without the sources: it has all files, trains and serves."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from itertools import islice
from pathlib import Path

import pytest
from service_process import running

import setrnn
from setrnn.data import newsroom
from setrnn.data.read import write_examples

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "setrnn"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    subprocess.run([*PIP, "wheel", *options, ROOT], check=True)
    (file,) = folder.glob("setrnn-*.whl")
    return file


@pytest.fixture(scope="module")
def program(wheel, tmp_path_factory):
    """`setrnn` of a new environment with the wheel; its dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("clean") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    to_it = ("--python", scripts / "python")
    subprocess.run([*PIP, *to_it, "install", "--no-deps", "--no-index", wheel], check=True)
    (site,) = {each.parent.parent for each in folder.rglob("setrnn/__init__.py")}
    # The .pth files at a path in a .pth file are not read, such as that of an editable install.
    places = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (site / "dependencies.pth").write_text("".join(f"{place}\n" for place in places))
    command = [scripts / "python", "-c", "import setrnn; print(setrnn.__file__)"]
    found = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(site)
    return scripts / "setrnn"


def test_all_files_of_the_package_are_in_the_wheel(wheel):
    sources = {
        f"setrnn/{file.relative_to(PACKAGE).as_posix()}"
        for file in PACKAGE.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == sources


def test_what_was_installed_trains_and_serves_the_page_and_the_api(program, tmp_path, test_texts):
    def run(*arguments):
        return subprocess.run(
            [program, *arguments],
            cwd=tmp_path,
            env=ENVIRONMENT | {"SETRNN_CACHE": str(tmp_path / "cache")},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    assert run("--version").split() == ["setrnn", setrnn.__version__]
    write_examples(islice(newsroom.examples("train"), 200), tmp_path / "news.jsonl")
    run("train", "news.jsonl", "--method", "br", "--out", "model")
    options = {"program": [program], "env": ENVIRONMENT}
    with running(tmp_path / "log", tmp_path / "model", **options) as service:
        ask = service.client
        assert ask.get("/healthz").status_code == 200
        assert "<title>" in ask.get("/").text
        for file in (PACKAGE / "serve" / "page").iterdir():
            assert ask.get(f"/page/{file.name}").content == file.read_bytes()
        found = ask.post("/v1/tag", json={"texts": test_texts[:2]}).json()
        assert all(each["labels"] for each in found["predictions"])
        assert service.end() == 0
