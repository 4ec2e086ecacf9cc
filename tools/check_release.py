"""Build the wheel and the source archive, and try them in clean environments.

    python tools/check_release.py [--out dist] [--pythons python3.10 python3.13] [--oldest]
    python tools/check_release.py --resolve 3.10 3.11 3.12 3.13 3.14

Each environment installs the wheel (the first one the source archive) with constraints.txt, then
trains, predicts and shows a model with the installed command. --oldest installs the oldest versions
that pyproject.toml claims instead, for the first Python. Needs `build` and `twine`.

--resolve installs nothing: it finds a wheel of every dependency under constraints.txt for each
version of Python, also of the extras; dev has those of word2vec and ray where they have wheels.
Needs `uv`.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[1]
DOCUMENTS = (
    ("The match ended in a draw after extra time", ["sport"]),
    ("Shares fell as the central bank raised rates", ["business"]),
    ("The bank bought the football club", ["business", "sport"]),
)
NETWORK = ("vectors.source=none", "training.epochs=1", "model.encoder_units=16")


def main() -> None:
    """Build, check the description, and try every environment; exit with 1 if one fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--pythons", nargs="+", default=[sys.executable])
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("--resolve", nargs="+", default=[], metavar="VERSION")
    chosen = parser.parse_args()
    if chosen.resolve:
        sys.exit(1 if [version for version in chosen.resolve if not resolve(version)] else 0)
    source, wheel = build(chosen.out)
    pins = list_oldest() if chosen.oldest else None
    failed = []
    for number, python in enumerate(chosen.pythons[:1] if chosen.oldest else chosen.pythons):
        start = time.monotonic()
        try:
            version = try_in(python, source if number == 0 and pins is None else wheel, pins)
            print(f"{version}: installed and tried in {time.monotonic() - start:.0f} s")
        except subprocess.CalledProcessError as error:
            failed.append(python)
            print(f"{python}: FAILED: {error}\n{(error.stdout or '')[-3000:]}")
    sys.exit(1 if failed else 0)


def resolve(version: str) -> bool:
    """Return whether all dependencies and extras have wheels for a version of Python."""
    pins = ("--constraint", ROOT / "constraints.txt", "--python-version", version)
    extras = [word for extra in ("serve", "hf", "docs", "dev") for word in ("--extra", extra)]
    options = (*extras, "--only-binary", ":all:", "--quiet")
    command = (sys.executable, "-m", "uv", "pip", "compile", ROOT / "pyproject.toml")
    try:
        found = run(*command, *options, *pins).count("==")
    except subprocess.CalledProcessError as error:
        print(f"Python {version}: FAILED: {error.stdout[-1000:]}")
        return False
    print(f"Python {version}: {found} wheels")
    return True


def build(out: Path) -> tuple[Path, Path]:
    """Return the source archive and the wheel, made anew and checked by twine."""
    for old in [*out.glob("setrnn-*.whl"), *out.glob("setrnn-*.tar.gz")]:
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", out, ROOT)
    (source,), (wheel,) = out.glob("setrnn-*.tar.gz"), out.glob("setrnn-*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", source, wheel)
    check_contents(wheel)
    print(f"built {source.name} and {wheel.name}: twine and the list of files find no fault")
    return source, wheel


def check_contents(wheel: Path) -> None:
    """Raise if the wheel lacks a file of the package, such as py.typed, or has one of elsewhere."""
    package = ROOT / "src" / "setrnn"
    wanted = {
        file.relative_to(ROOT / "src").as_posix()
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert "setrnn/py.typed" in found
    assert found == wanted, f"the wheel differs by {sorted(found ^ wanted)}"


def list_oldest() -> list[str]:
    """Return the dependencies pinned to their lower bounds, with those of the service."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["serve"]]
    return [re.sub(r">=([\w.]+)(,<[\w.]+)?", r"==\1", each) for each in wanted]


def try_in(python: str, package: Path, pins: list[str] | None) -> str:
    """Install a package into a new environment and use it; return the version of Python."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(python, "-m", "venv", place / "environment")
        scripts = place / "environment" / ("Scripts" if sys.platform == "win32" else "bin")
        pip = (scripts / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        if pins is None:
            run(*pip, "--constraint", ROOT / "constraints.txt", f"{package}[serve]")
        else:
            run(*pip, f"{package}[serve]", *pins)
        use(scripts, place)
        return run(scripts / "python", "--version", cwd=place).strip()


def use(scripts: Path, place: Path) -> None:
    """Train two systems, predict, show, and import what types and the service need."""
    rows = [{"text": text, "labels": labels} for text, labels in DOCUMENTS * 20]
    data = place / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = [word for each in NETWORK for word in ("--set", each)]
    run(scripts / "setrnn", "--version", cwd=place)
    for method, options in (("br-support", []), ("set-rnn", settings)):
        model = place / method
        train = ("train", data, "--method", method, "--out", model, *options)
        run(scripts / "setrnn", *train, cwd=place)
        run(scripts / "setrnn", "show", model, cwd=place)
        out = place / f"{method}.jsonl"
        run(scripts / "setrnn", "predict", model, data, "--out", out, cwd=place)
        tags = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        assert len(tags) == len(rows)
    found = run(
        scripts / "python", "-c", "import setrnn.serve.server as a; print(a.__file__)", cwd=place
    )
    assert (Path(found.strip()).parents[1] / "py.typed").is_file()


def run(*command: object, cwd: Path = ROOT) -> str:
    """Run a command, and return what it prints; its errors are kept with the failure."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    main()
