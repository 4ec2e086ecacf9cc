"""Start-up: CPU time and wall time of short commands, each in a new process.

    python benchmarks/startup.py MODEL [--turns 7] [--before OTHER_CHECKOUT/src]

MODEL is a model folder, such as that of a small network. The commands take turns, and so does
another checkout; the table has medians. CPU time hardly depends on what else runs. The package is
copied and compiled first, as an installed one is: compiling it takes .2 s. Which modules are
imported is checked by tests/cli/test_commands.py; `python -X importtime` shows the time of each.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEXT = {"text": "The ski race was cancelled because of the storm."}
SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--before", type=Path, help="the sources to compare with")
    wanted = parser.parse_args()
    sources = {"now": Path(__file__).resolve().parent.parent / "src"}
    sources |= {"before": wanted.before} if wanted.before else {}
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "one.jsonl"
        file.write_text(json.dumps(TEXT) + "\n")
        predict = ["-m", "setrnn", "predict", str(wanted.model), str(file), "--out", f"{place}/out"]
        commands = {  # with the goal, in seconds of CPU time
            "python": (["-c", "pass"], None),
            "import setrnn": (["-c", "import setrnn"], 0.2),
            "setrnn --help": (["-m", "setrnn", "--help"], 0.4),
            "import torch": (["-c", "import torch"], None),
            "setrnn predict, one text": (predict, 2.0),
        }
        for name, source in sources.items():
            shutil.copytree(source / "setrnn", Path(place) / name / "setrnn")
            compileall.compile_dir(Path(place) / name, quiet=1)
        times = {(source, name): [] for source in sources for name in commands}
        for _ in range(wanted.turns):
            for source, name in times:
                command = [sys.executable, *commands[name][0]]
                times[source, name].append(time_command(command, Path(place) / source))
    print("| command | CPU time, s | wall time, s | goal |\n|---|---|---|---|")
    for (source, name), found in times.items():
        cpu, wall = (statistics.median(each) for each in zip(*found, strict=True))
        title = name if len(sources) == 1 else f"{name}, {source}"
        print(f"| {title} | {cpu:.2f} | {wall:.2f} | {commands[name][1] or ''} |")


def time_command(command: list[str], source: Path) -> tuple[float, float]:
    """Run a command with the package in a folder; return its CPU time and its wall time."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, check=True, env=environment, **SILENT)
    seconds, after = time.perf_counter() - start, os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system, seconds


if __name__ == "__main__":
    main()
