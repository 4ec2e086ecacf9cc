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
WIDTH = 80


def picture(command: list[str], title: str, file: Path) -> None:
    """Run a command in an empty folder, and draw its standard output as an SVG."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    more = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "PATH": programs}
    with tempfile.TemporaryDirectory() as folder:
        output = subprocess.run(
            [Path(sys.executable).with_name("setrnn"), *command],
            cwd=folder,
            env=os.environ | more,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.replace(str(Path(folder).resolve()), "/home/you")
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(Text.from_ansi(output.strip("\n")))
    # Use the fonts of the reader, without a request.
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title=title), flags=re.DOTALL)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    file.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


def main() -> None:
    """Make all pictures."""
    picture(["demo"], "setrnn demo", HERE / "demo.svg")


if __name__ == "__main__":
    main()
