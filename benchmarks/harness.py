"""What the benchmarks share: their options, their tables, and processes that take turns."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src"
SMALL = (  # a network that trains in seconds
    "vectors.source=none", "vectors.dimensions=32", "model.encoder_units=32",
    "model.decoder_units=32", "model.decoder_layers=1", "search.beam_width=6",
    "training.epochs=3",
)  # fmt: skip


def make_parser(about: str | None) -> argparse.ArgumentParser:
    """Return a parser of options with the description of a script."""
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=about, formatter_class=kind)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers, too")
    return parser


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options of training: --set and --device."""
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--device", default="auto")


def split_numbers(text: str) -> list[int]:
    """Read numbers that commas separate."""
    return [int(each) for each in text.split(",")]


def print_row(*cells: object) -> None:
    """Print a row of a Markdown table at once."""
    print("|", " | ".join(str(each) for each in cells), "|", flush=True)


def print_head(*cells: str) -> None:
    """Print the head of a Markdown table."""
    print_row(*cells)
    print("|---" * len(cells) + "|", flush=True)


def format_scores(values: Iterable[float]) -> str:
    """Return scores as in `.721 / .385 / .720`."""
    return " / ".join(f"{value:.3f}".removeprefix("0") for value in values)


def save(values: Any, file: Path | None) -> None:  # noqa: ANN401 (any JSON)
    """Write numbers as JSON, if a file is given."""
    if file:
        file.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


class Worker:
    """A process of this script that works when it is told to, with the code of a checkout."""

    def __init__(self, source: Path, *arguments: str, threads: int = 1) -> None:
        environment = {"PYTHONPATH": str(source), "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            [sys.executable, sys.argv[0], *arguments],
            env=os.environ | environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, **work: object) -> dict[str, Any]:
        """Send a piece of work, and wait for the answer."""
        asked, answered = self.process.stdin, self.process.stdout
        assert asked is not None
        assert answered is not None
        asked.write(json.dumps(work) + "\n")
        asked.flush()
        line = answered.readline()
        if not line:
            raise SystemExit(f"The worker ended with {self.process.wait()}.")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        self.process.communicate(timeout=60)


def cpu_seconds(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None
) -> float:
    """Run a command without its output; return the CPU time that it took."""
    before = os.times()
    subprocess.run(
        command, check=True, env=os.environ | dict(environment or {}),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system
