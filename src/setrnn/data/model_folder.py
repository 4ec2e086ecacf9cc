"""A model on disk: a folder, written completely or not at all, without pickles.

model.safetensors   the learned arrays
config.json         the method, its settings, and the size and hash of the other files
tokenizer.json      texts to ids; a mixture may also have tokenizer-1.json, tokenizer-2.json ...
labels.json         the labels, in descending order of frequency
calibration.json    optional: thresholds and other values fitted after training
README.md           optional: a description for people; kept when the model is saved again
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.config import Config, MixtureConfig, from_dict, settings_hash, to_dict
from setrnn.data.folders import file_hash, recovered, whole_folder
from setrnn.data.joint_encoder import join_encoders
from setrnn.data.labels import LabelVocabulary
from setrnn.data.subwords import load_text_encoder
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import ConfigError, ModelError

FORMAT = 1
CONFIG, ARRAYS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
LABELS, CALIBRATION, README = "labels.json", "calibration.json", "README.md"
_MORE_TOKENIZERS = re.compile(r"tokenizer-[1-9]\d*\.json")  # of a mixture


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
        tokenizers = list_tokenizers(model.config)
        for name, encoder in zip(tokenizers, model.encoder.parts, strict=True):
            encoder.save(temporary / name)
        model.labels.save(temporary / LABELS)
        names = [ARRAYS, *tokenizers, LABELS]
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


def list_tokenizers(config: Config) -> list[str]:
    """Return the name of the file of each tokenizer."""
    return [TOKENIZER, *(f"tokenizer-{n}.json" for n in range(1, len(config.texts)))]


def refuse_other_folder(folder: Path) -> None:
    """Raise if `folder` exists and is not a model, or holds files of another kind."""
    if not folder.exists():
        return
    names = {each.name for each in folder.iterdir()} if folder.is_dir() else {folder.name}
    names -= {name for name in names if _MORE_TOKENIZERS.fullmatch(name)}
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
    from safetensors.numpy import load_file

    if not recovered(folder).is_dir():
        raise ModelError(f"{folder} is not a model: there is no such folder.")
    description = _read_description(folder)
    files = description["files"]
    try:
        kind = MixtureConfig if "members" in description["config"] else Config
        config = from_dict(kind, description["config"])
    except (ConfigError, AttributeError, TypeError) as error:
        raise ModelError(f"{folder} cannot be used: {error}") from error
    calibrated, tokenizers = CALIBRATION in files, list_tokenizers(config)
    for name in (ARRAYS, *tokenizers, LABELS, *([CALIBRATION] if calibrated else [])):
        if name not in files:
            raise _damaged(folder / CONFIG)
        _check(folder / name, files[name])
    encoders = [
        load_text_encoder(folder / name, text)
        for name, text in zip(tokenizers, config.texts, strict=True)
    ]
    return SavedModel(
        method=str(description["method"]),
        config=config,
        encoder=join_encoders(encoders),
        labels=LabelVocabulary.load(folder / LABELS),
        arrays=load_file(folder / ARRAYS),
        notes=description["notes"],
        calibration=_read_object(folder / CALIBRATION) if calibrated else None,
    )


def _read_object(file: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object."""
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
    return description


def _seal(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "blake2b": file_hash(file)}


def _check(file: Path, seal: Mapping[str, Any]) -> None:
    if not file.is_file():
        raise ModelError(f"{file.parent} lacks {file.name}. Train or copy the model again.")
    if file.stat().st_size != seal["bytes"]:
        raise ModelError(
            f"{file} is cut short: {file.stat().st_size:,} of {seal['bytes']:,} bytes. "
            "Train or copy the model again."
        )
    if _seal(file) != dict(seal):
        raise _damaged(file)


def _damaged(file: Path) -> ModelError:
    return ModelError(f"{file} is damaged. Train or copy the model again.")
