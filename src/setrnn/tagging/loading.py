"""A model folder to a tagger, checked."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy.typing as npt

from setrnn.data.model_folder import CALIBRATION, load_model
from setrnn.data.ragged import Ragged
from setrnn.errors import ModelError
from setrnn.methods import METHODS
from setrnn.systems.registry import find_system
from setrnn.tagging.calibration import Calibration
from setrnn.tagging.tagger import SEEN_SETS, SEEN_SETS_OFFSETS, Tagger


def load(folder: str | Path, device: str = "auto") -> Tagger:
    """Load a trained model onto a device: cpu, cuda, or auto for the GPU where there is one."""
    saved = load_model(Path(folder))
    if saved.method not in METHODS:
        raise ModelError(f"{folder} holds a '{saved.method}' model, which this setrnn lacks.")
    method = METHODS[saved.method]
    try:
        arrays = dict(saved.arrays)
        seen_sets = _popped_seen_sets(arrays)
        system = find_system(method).from_arrays(arrays, method, saved.config, device)
        system.check_sizes(saved.encoder.n_tokens, len(saved.labels))
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"{folder} holds other weights than its '{saved.method}' model has: "
            f"{_first_line(error)} Train or copy the model again."
        ) from error
    calibration = None
    if saved.calibration is not None:
        calibration = Calibration.from_dict(saved.calibration, f"{Path(folder) / CALIBRATION}")
    return Tagger(
        saved.method,
        saved.config,
        saved.encoder,
        saved.labels,
        system,
        dict(saved.notes),
        calibration,
        seen_sets,
    )


def _popped_seen_sets(arrays: dict[str, npt.NDArray[Any]]) -> Ragged | None:
    """Take the label sets of training from beside the system's own arrays."""
    if SEEN_SETS not in arrays:
        return None
    return Ragged(arrays.pop(SEEN_SETS), arrays.pop(SEEN_SETS_OFFSETS))


def _first_line(error: Exception) -> str:
    """Say what does not fit, in one line; torch lists every array on a line of its own."""
    if isinstance(error, KeyError):
        return f"{error} is missing."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    chosen = lines[1] if len(lines) > 1 and lines[0].endswith(":") else "".join(lines[:1])
    return shorten(chosen.rstrip(". "), 160, placeholder=" ...") + "."
