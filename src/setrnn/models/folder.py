"""A model on disk: a folder, written completely or not at all, without pickles.

model.safetensors   the learned arrays
config.json         the method, its settings, the hierarchy of its labels if there is one, and the
                    size and hash of the others but README.md
tokenizer.json      texts to ids; a mixture may also have tokenizer-1.json, tokenizer-2.json ...
labels.json         the labels, in descending order of frequency
calibration.json    optional: thresholds and other values fitted after training
README.md           optional: a description for people; one that people have written is kept when
                    the model is saved or calibrated again

The version of a model is the seal (a hash) of its config.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn import __version__
from setrnn.config import Config, MixtureConfig, from_dict, settings_hash, to_dict
from setrnn.data.disk import (
    check_folder_place,
    is_temporary,
    locked,
    recovered,
    seal_file,
    temporary_folder,
    whole_folder,
)
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
from setrnn.data.prepared import HIERARCHY
from setrnn.data.text.subwords import join_encoders, load_text_encoder
from setrnn.data.text.words import TextEncoder
from setrnn.errors import ConfigError, ModelError

FORMAT = 3
CONFIG, ARRAYS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
LABELS, CALIBRATION, README = "labels.json", "calibration.json", "README.md"
FILES = (CONFIG, ARRAYS, TOKENIZER, "tokenizer-[1-9]*.json", LABELS, CALIBRATION, README)
GENERATED = "<!-- Written by setrnn. Remove this line to keep your changes. -->"
MAX_BYTES = 2**26  # of a JSON file: 64 MiB
MAX_WEIGHT = 1e12  # products of larger ones are infinite in single precision


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
    version: str = ""  # of the folder that it was read from
    rule: str | None = None  # the rule that predicts; the method's own if None
    readme: str = ""  # starts with GENERATED; empty for none
    hierarchy: Hierarchy | None = None


def is_model_file(name: str) -> bool:
    """Return whether a file name is one of those of a model folder.

    Example:
        >>> [is_model_file(name) for name in ("tokenizer-1.json", "README.md", "model.pkl")]
        [True, True, False]
    """
    return any(fnmatchcase(name, each) for each in FILES)


def is_description(content: bytes) -> bool:
    """Return whether the content of a config.json is that of a model of setrnn."""
    return b'"setrnn"' in content


def is_written(readme: bytes) -> bool:
    """Return whether a person has written a README.md; a hub's header alone does not count."""
    text = readme.replace(b"\r\n", b"\n").lstrip(b"\xef\xbb\xbf")
    if text.startswith(b"---\n") and b"\n---\n" in text:
        text = text.partition(b"\n---\n")[2]
    text = text.strip()
    return bool(text) and not text.startswith(GENERATED.encode())


def refuse_other_folder(folder: Path) -> None:
    """Raise if `folder` exists and is not a model, or holds files of another kind."""
    if not folder.exists():
        return
    names = {each.name for each in folder.iterdir()} if folder.is_dir() else {folder.name}
    others = sorted(name for name in names if not is_model_file(name) and not is_temporary(name))
    if CONFIG in names:
        is_model = is_description((folder / CONFIG).read_bytes())
    else:
        is_model = not others and README not in names
    if not is_model:
        raise ModelError(f"{folder} exists and is not a model. Name another folder.")
    if others:
        raise ModelError(
            f"{folder} also holds {others[0]}, which is not part of a model and would be lost. "
            "Move it elsewhere, or name another folder."
        )


def check_model_place(folder: Path) -> None:
    """Raise if a model cannot be written to `folder`: before the work, not after it."""
    refuse_other_folder(folder)
    check_folder_place(folder)
    place = folder.resolve()
    while not place.parent.exists():
        place = place.parent
    with temporary_folder(place, is_private=True, way_out=" Name a folder in another place."):
        pass


def save_model(
    folder: Path, model: SavedModel, way_out: str = "", *, replaced: str | None = None
) -> str:
    """Write a model folder, and return its version.

    An existing model is replaced, but not what people wrote about it. If it must have the version
    `replaced` and no longer has it, nothing is written.
    """
    refuse_other_folder(folder)
    with locked(folder):
        if replaced is not None and read_version(folder) != replaced:
            raise ModelError(
                f"{folder} has changed in the meantime: the calibration was not written. "
                "Calibrate it again."
            )
        return _write_model(folder, model, way_out)


def _write_model(folder: Path, model: SavedModel, way_out: str) -> str:
    from safetensors.numpy import save

    with whole_folder(folder, way_out) as temporary:
        readme = (folder / README).read_bytes() if (folder / README).is_file() else b""
        if not is_written(readme):
            readme = model.readme.encode()
        if readme:
            (temporary / README).write_bytes(readme)
        arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays.items()}
        (temporary / ARRAYS).write_bytes(save(arrays))
        tokenizers = _list_tokenizers(model.config)
        for name, encoder in zip(tokenizers, model.encoder.parts, strict=True):
            encoder.save(temporary / name)
        model.labels.save(temporary / LABELS)
        sealed = [ARRAYS, *tokenizers, LABELS]
        if model.calibration is not None:
            (temporary / CALIBRATION).write_text(json.dumps(model.calibration, indent=1))
            sealed.append(CALIBRATION)
        description = {
            "format": FORMAT,
            "setrnn": __version__,
            "method": model.method,
            **({} if model.rule is None else {"rule": model.rule}),
            **({} if model.hierarchy is None else {HIERARCHY: model.hierarchy.as_dict()}),
            "config": to_dict(model.config),
            "notes": dict(model.notes),
            "files": {name: seal_file(temporary / name) for name in sealed},
        }
        seal = description["seal"] = _seal(description)
        text = json.dumps(description, indent=2, ensure_ascii=False)
        (temporary / CONFIG).write_text(text, encoding="utf-8")
    return seal


def load_model(folder: Path) -> SavedModel:
    """Read a model folder, after checking that it is complete and undamaged."""
    try:
        return _read_model(recovered(folder))
    except (ModelError, OSError):  # it may have been replaced by another process meanwhile
        return _read_model(recovered(folder))


def read_version(folder: Path) -> str:
    """Read which model a folder holds; the arrays are not read."""
    return str(read_description(recovered(folder))["seal"])


def read_calibration(folder: Path) -> Mapping[str, Any] | None:
    """Read the calibration alone, as plain JSON values; None if there is none."""
    return _read_calibration(folder, read_description(recovered(folder))["files"])


def _read_calibration(folder: Path, seals: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if CALIBRATION not in seals:
        return None
    _check(folder / CALIBRATION, seals[CALIBRATION])
    return _read_object(folder / CALIBRATION)


def _read_model(folder: Path) -> SavedModel:
    description = read_description(folder)
    try:
        kind = MixtureConfig if "members" in description["config"] else Config
        config = from_dict(kind, description["config"])
    except (ConfigError, AttributeError) as error:
        raise ModelError(f"{folder} cannot be used: {error}") from error
    try:
        hierarchy = Hierarchy.from_dict(description.get(HIERARCHY))
    except ValueError as error:  # a DataError is one too
        raise _damaged(folder / CONFIG) from error
    tokenizers = _list_tokenizers(config)
    for name in (ARRAYS, *tokenizers, LABELS):
        _check(folder / name, description["files"].get(name))
    encoders = [
        load_text_encoder(folder / name, text)
        for name, text in zip(tokenizers, config.texts, strict=True)
    ]
    return SavedModel(
        method=description["method"],
        config=config,
        encoder=join_encoders(encoders),
        labels=LabelVocabulary.load(folder / LABELS),
        arrays=_load_arrays(folder / ARRAYS),
        notes=description["notes"],
        calibration=_read_calibration(folder, description["files"]),
        version=description["seal"],
        rule=description.get("rule"),
        hierarchy=hierarchy,
    )


def _list_tokenizers(config: Config) -> list[str]:
    """Return the name of the file of each tokenizer."""
    return [TOKENIZER, *(f"tokenizer-{n}.json" for n in range(1, len(config.texts)))]


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


def read_description(folder: Path) -> dict[str, Any]:
    """Read and check config.json, but not the files that it names."""
    file = folder / CONFIG
    if not folder.is_dir():
        why = "it is a file, not a folder" if folder.is_file() else "there is no such folder"
        raise ModelError(f"{folder} is not a model: {why}.")
    if not file.is_file():
        raise ModelError(f"{folder} is not a model: it has no {CONFIG}.")
    description = _read_object(file)
    if description.get("format") != FORMAT and "setrnn" in description:
        raise ModelError(
            f"{folder} was written by another version of setrnn ({description['setrnn']!r:.40}), "
            "in a format that this one does not read. Train the model again."
        )
    kinds = {"method": str, "config": dict, "notes": dict, "files": dict}
    is_sound = all(isinstance(description.get(name), kind) for name, kind in kinds.items())
    if not is_sound or description.get("seal") != _seal(description):
        raise _damaged(file)
    return description


def _seal(values: Mapping[str, Any]) -> str:
    """Return a hash of all values but the seal."""
    return settings_hash({name: value for name, value in values.items() if name != "seal"})


def _check_length(file: Path) -> None:
    """Refuse a JSON file that no model has: reading it could exhaust the memory."""
    if file.suffix == ".json" and file.stat().st_size > MAX_BYTES:
        raise ModelError(f"{file} is larger than {MAX_BYTES:,} bytes: it is not of a model.")


def _check(file: Path, seal: object) -> None:
    """Raise unless a file is there and has the size and the hash of its seal."""
    if not file.is_file():
        raise ModelError(f"{file.parent} lacks {file.name}. Train or copy the model again.")
    _check_length(file)
    if seal_file(file) != seal:
        raise _damaged(file)


def _damaged(file: Path) -> ModelError:
    return ModelError(f"{file} is damaged. Train or copy the model again.")


def _load_arrays(file: Path) -> dict[str, npt.NDArray[Any]]:
    """Read all arrays of a file; raise ModelError if one holds NaN, infinite or absurd values."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays: dict[str, npt.NDArray[Any]] = load_file(file)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{file} holds no arrays. Train or copy the model again.") from error
    for name, array in arrays.items():
        has_values = array.dtype.kind == "f" and array.size
        # Both are NaN if any value is. No copy of the array is made.
        if has_values and not (
            float(array.min()) >= -MAX_WEIGHT and float(array.max()) <= MAX_WEIGHT
        ):
            raise ModelError(
                f"{file}: '{name}' holds values that are not finite numbers, or beyond "
                f"{MAX_WEIGHT:g}. Train or copy the model again."
            )
    return arrays
