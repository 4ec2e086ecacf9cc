"""How the runs were made: what all have in common, and where they differ."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from setrnn.comparison.records import Record

VARYING = ("seed", "time", "started", "ended", "finished", "date")  # of every run its own


@dataclass(frozen=True)
class Settings:
    """Settings by dotted name: those of all systems, and those that differ, by system."""

    common: Mapping[str, str]
    differing: Mapping[str, Mapping[str, str]]  # by name, then by system


def split_settings(records: Sequence[Record], field: str) -> Settings:
    """Part what all runs have in common from what differs between systems.

    `field` is config, treatment or environment. Runs of one system that differ are listed
    together; a system that has no such setting is left out of it.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for record in records:
        if record.is_added:
            continue
        for name, value in _flat(getattr(record, field)).items():
            values = found.setdefault(name, {}).setdefault(record.method, [])
            if value not in values:
                values.append(value)
    common, differing = {}, {}
    for name, by_system in found.items():
        if name.rpartition(".")[2] in VARYING:
            continue
        distinct = {tuple(values) for values in by_system.values()}
        if len(distinct) == 1 and len(next(iter(distinct))) == 1:
            common[name] = next(iter(distinct))[0]
        else:
            differing[name] = {system: " / ".join(values) for system, values in by_system.items()}
    return Settings(common, differing)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = _text(value)
    return flat


def _text(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
