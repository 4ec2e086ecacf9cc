"""Start-up: CPU time and wall time of short commands, each in a new process.

    python benchmarks/startup.py MODEL [--turns 7]

MODEL is a model folder, such as that of a small network. The commands take turns; the table has
medians. CPU time hardly depends on what else runs. Which modules are imported is checked by
tests/cli/test_commands.py; `python -X importtime` shows the time of each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEXT = {"text": "The ski race was cancelled because of the storm."}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--turns", type=int, default=7)
    wanted = parser.parse_args()
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
        times = {name: [] for name in commands}
        for _ in range(wanted.turns):
            for name, (arguments, _) in commands.items():
                times[name].append(time_command([sys.executable, *arguments]))
    print("| command | CPU time, s | wall time, s | goal |\n|---|---|---|---|")
    for name, (_, goal) in commands.items():
        cpu, wall = (statistics.median(each) for each in zip(*times[name], strict=True))
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {goal or ''} |")


def time_command(command: list[str]) -> tuple[float, float]:
    """Run a command; return its CPU time and its wall time."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - start, os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system, seconds


if __name__ == "__main__":
    main()
