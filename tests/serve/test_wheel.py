"""The wheel has all files of the package: also those of the page, and the data."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"


def test_all_files_of_the_package_are_in_the_wheel(tmp_path):
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path)
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, ROOT], check=True)
    (wheel,) = tmp_path.glob("setrnn-*.whl")
    sources = {
        file.relative_to(SOURCES).as_posix()
        for file in SOURCES.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == sources
