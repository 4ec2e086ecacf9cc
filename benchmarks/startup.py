"""Start-up: CPU time of short commands, each in a new process.

    python benchmarks/startup.py MODEL... [--turns 7] [--before OTHER_CHECKOUT/src]

Each MODEL is a model folder, such as that of a small network. The commands take turns, and so does
another checkout; the table has medians. The package is copied and compiled first, as an installed
one is: compiling it takes .2 s. tests/cli/test_commands.py checks which modules are imported;
`python -X importtime` shows the time of each.
"""

from __future__ import annotations

import compileall
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from harness import SOURCE, cpu_seconds, make_parser, print_head, print_row, save


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--before", type=Path, help="the sources to compare with")
    chosen = parser.parse_args()
    text = ["--text", "The ski race was cancelled because of the storm."]
    commands = {
        "import setrnn": ["-c", "import setrnn"],
        "setrnn --help": ["-m", "setrnn", "--help"],
        "import torch": ["-c", "import torch"],
    }
    for model in chosen.models:
        run = ["-m", "setrnn", "predict", str(model), *text]
        commands[f"setrnn predict {model.name}, one text"] = run
    with tempfile.TemporaryDirectory() as place:
        sources = {"now": SOURCE} | ({"before": chosen.before} if chosen.before else {})
        for name, source in sources.items():
            shutil.copytree(source / "setrnn", Path(place) / name / "setrnn")
            compileall.compile_dir(Path(place) / name, quiet=1)
        times = {(name, command): [] for name in sources for command in commands}
        for _ in range(chosen.turns):
            for name, command in times:
                path = {"PYTHONPATH": f"{place}/{name}"}
                times[name, command].append(cpu_seconds([sys.executable, *commands[command]], path))
    print_head("command", "checkout", "CPU time, s")
    for (name, command), found in times.items():
        print_row(command, name, f"{statistics.median(found):.2f}")
    save({" ".join(key): found for key, found in times.items()}, chosen.json)


if __name__ == "__main__":
    main()
