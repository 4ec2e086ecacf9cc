"""When a model was trained, and with which versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from setrnn import __version__

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "tokenizers")


def describe_occasion() -> dict[str, Any]:
    """Return the time and the versions, as notes of a model that was just trained."""
    versions = {"setrnn": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # such as torch under another name
            continue
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"trained": now, "versions": versions}


def is_same_but_occasion(notes: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether notes are those of the same training, apart from when they were written."""

    def write(each: Mapping[str, Any]) -> str:
        kept = {key: value for key, value in each.items() if key not in ("trained", "versions")}
        return json.dumps(kept, sort_keys=True)

    return write(notes) == write(other)
