"""A model on disk: a folder, written completely or not at all, without pickles.

model.safetensors   the learned arrays
config.json         the method, its settings, and the size and hash of the other files
tokenizer.json      texts to ids
labels.json         the labels, in descending order of frequency
calibration.json    optional: thresholds and other values fitted after training
README.md           optional: a description for people; kept when the model is saved again
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.config import Config, from_dict, settings_hash, to_dict
from setrnn.data.arrays import load_arrays
from setrnn.data.folders import file_hash, recovered, whole_folder
from setrnn.data.labels import LabelVocabulary
from setrnn.data.subwords import load_text_encoder
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import ConfigError, ModelError

FORMAT = 1
CONFIG, ARRAYS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
LABELS, CALIBRATION, README = "labels.json", "calibration.json", "README.md"
MOST_BYTES = 2**26  # of a JSON file: 64 MiB


@dataclass(frozen=True)
class SavedModel:
    """The content of a model folder."""

    method: str
    config: Config
    encoder: TextEncoder
    labels: LabelVocabulary
    arrays: Mapping[str, npt.NDArray[Any]]
    notes: Mapping[str, Any]  # about its training, for people; any JSON values
    calibration: Mapping[str, Any] | None = None


def save_model(folder: Path, model: SavedModel, version: str) -> None:
    """Write a model folder; an existing model is replaced, but its README.md is kept."""
    from safetensors.numpy import save

    refuse_other_folder(folder)
    readme = folder / README
    with whole_folder(folder) as temporary:
        if readme.is_file():
            (temporary / README).write_bytes(readme.read_bytes())
        arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays.items()}
        (temporary / ARRAYS).write_bytes(save(arrays))
        model.encoder.save(temporary / TOKENIZER)
        model.labels.save(temporary / LABELS)
        names = [ARRAYS, TOKENIZER, LABELS]
        if model.calibration is not None:
            text = json.dumps(dict(model.calibration), indent=1)
            (temporary / CALIBRATION).write_text(text, encoding="utf-8")
            names.append(CALIBRATION)
        description = {
            "format": FORMAT,
            "setrnn": version,
            "method": model.method,
            "config": to_dict(model.config),
            "notes": dict(model.notes),
            "files": {name: _seal(temporary / name) for name in names},
        }
        description["seal"] = settings_hash(description)
        text = json.dumps(description, indent=2, ensure_ascii=False)
        (temporary / CONFIG).write_text(text, encoding="utf-8")


def refuse_other_folder(folder: Path) -> None:
    """Raise if `folder` exists and is not a model, or holds files of another kind."""
    if not folder.exists():
        return
    names = {each.name for each in folder.iterdir()} if folder.is_dir() else {folder.name}
    others = sorted(names - {CONFIG, ARRAYS, TOKENIZER, LABELS, CALIBRATION, README})
    if CONFIG in names:
        is_model = b'"setrnn"' in (folder / CONFIG).read_bytes()
    else:
        is_model = not others and README not in names
    if not is_model:
        raise ModelError(f"{folder} exists and is not a model. Name another folder.")
    if others:
        raise ModelError(
            f"{folder} also holds {others[0]}, which is not part of a model and would be lost. "
            "Move it elsewhere, or name another folder."
        )


def load_model(folder: Path) -> SavedModel:
    """Read a model folder, after checking that it is complete and undamaged."""
    if not recovered(folder).is_dir():
        raise ModelError(f"{folder} is not a model: there is no such folder.")
    description = _read_description(folder)
    files = description["files"]
    calibrated = CALIBRATION in files
    for name in (ARRAYS, TOKENIZER, LABELS, *([CALIBRATION] if calibrated else [])):
        _check(folder / name, files[name])
    try:
        config = from_dict(Config, description["config"])
    except (ConfigError, AttributeError) as error:
        raise ModelError(f"{folder} cannot be used: {error}") from error
    return SavedModel(
        method=str(description["method"]),
        config=config,
        encoder=load_text_encoder(folder / TOKENIZER, config.text),
        labels=LabelVocabulary.load(folder / LABELS),
        arrays=load_arrays(folder / ARRAYS),
        notes=description["notes"],
        calibration=_read_object(folder / CALIBRATION) if calibrated else None,
    )


def _read_object(file: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object."""
    _check_length(file)
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(file) from error
    if not isinstance(values, dict):
        raise _damaged(file)
    return values


def _read_description(folder: Path) -> dict[str, Any]:
    file = folder / CONFIG
    if not file.is_file():
        raise ModelError(f"{folder} is not a model: it has no {CONFIG}.")
    description = _read_object(file)
    try:
        newest = int(description["format"])
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _damaged(file) from error
    if newest > FORMAT:
        raise ModelError(
            f"{folder} was written by a newer version of setrnn ({description.get('setrnn')}). "
            "Upgrade setrnn."
        )
    if description.pop("seal", None) != settings_hash(description):
        raise _damaged(file)
    kinds = {"method": str, "config": dict, "notes": dict, "files": dict}
    is_sound = all(isinstance(description.get(name), kind) for name, kind in kinds.items())
    seals = (
        [description["files"].get(name) for name in (ARRAYS, TOKENIZER, LABELS)] if is_sound else []
    )
    if not is_sound or not all(isinstance(each, dict) and "bytes" in each for each in seals):
        raise _damaged(file)
    return description


def _seal(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "blake2b": file_hash(file)}


def _check_length(file: Path) -> None:
    """Refuse a JSON file that no model has: reading it could exhaust the memory."""
    if file.suffix == ".json" and file.stat().st_size > MOST_BYTES:
        raise ModelError(f"{file} is larger than {MOST_BYTES:,} bytes: it is not of a model.")


def _check(file: Path, seal: Mapping[str, Any]) -> None:
    if not file.is_file():
        raise ModelError(f"{file.parent} lacks {file.name}. Train or copy the model again.")
    _check_length(file)
    if file.stat().st_size != seal["bytes"]:
        raise ModelError(
            f"{file} is cut short: {file.stat().st_size:,} of {seal['bytes']:,} bytes. "
            "Train or copy the model again."
        )
    if _seal(file) != dict(seal):
        raise _damaged(file)


def _damaged(file: Path) -> ModelError:
    return ModelError(f"{file} is damaged. Train or copy the model again.")
