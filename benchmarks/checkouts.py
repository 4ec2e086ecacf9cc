"""Processes of this and of another checkout, which take turns at the same work.

A worker is a process of a script with `--worker PREPARED MODEL N`: it reads a line per turn and
answers with a line of JSON. The script must import only what both checkouts have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def list_sources(before: Path | None) -> dict[str, Path]:
    """Return the sources of the checkouts by name: those to compare with, if any, and these."""
    now = Path(__file__).resolve().parent.parent / "src"
    return {"now": now} if before is None else {"before": before, "now": now}


def start_worker(
    script: str, source: Path, prepared: Path, model: Path, n_documents: int, n_threads: int
) -> subprocess.Popen[str]:
    """Start a worker that imports the package from `source`."""
    return subprocess.Popen(
        [sys.executable, script, "--worker", str(prepared), str(model), str(n_documents)],
        env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": str(n_threads)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def take_turns(
    workers: Mapping[str, Any], work: str, n_turns: int
) -> dict[str, list[dict[str, Any]]]:
    """Let the workers do the work one after the other, in changing order; return the answers."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    for turn in range(n_turns):
        for name in list(workers) if turn % 2 else reversed(workers):
            workers[name].stdin.write(work + "\n")
            workers[name].stdin.flush()
            found[name].append(json.loads(workers[name].stdout.readline()))
    return found
