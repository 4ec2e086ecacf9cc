"""Make the pictures of the docs from the output of the commands.

python docs/make_pictures.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
WIDTH = 92


def picture(command: list[str], title: str, file: Path) -> None:
    """Run a command and draw its standard output as an SVG."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    output = subprocess.run(
        [sys.executable, "-m", "setrnn", *command],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(output.strip("\n")))
    # Use the fonts of the reader, without a request.
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title=title), flags=re.DOTALL)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    file.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        picture(["demo", "--out", f"{folder}/demo"], "setrnn demo", HERE / "demo.svg")


if __name__ == "__main__":
    main()
