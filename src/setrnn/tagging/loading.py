"""A model folder to a tagger, checked."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy.typing as npt

from setrnn.data.model_folder import CALIBRATION, SavedModel, load_model
from setrnn.data.ragged import Ragged
from setrnn.errors import ModelError
from setrnn.methods import METHODS, System, find_method
from setrnn.tagging.calibration import Calibration
from setrnn.tagging.tagger import SEEN_SETS, SEEN_SETS_OFFSETS, Tagger


def load(folder: str | Path, device: str = "auto") -> Tagger:
    """Load a trained model onto a device: cpu, cuda, or auto for the GPU where there is one."""
    saved = load_model(Path(folder))
    if saved.method not in METHODS:
        raise ModelError(f"{folder} holds a '{saved.method}' model, which this setrnn lacks.")
    method = find_method(saved.method)
    try:
        arrays = dict(saved.arrays)
        seen_sets = _popped_seen_sets(arrays)
        system = method.rebuild(arrays, saved.config, device)
        if method.is_neural:
            _check_sizes(saved, system)
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


def _check_sizes(saved: SavedModel, system: System) -> None:
    """Refuse weights for other words or labels than those listed."""
    from setrnn.systems import NeuralSystem

    assert isinstance(system, NeuralSystem)
    n_words, n_labels = system.network.encoder.n_tokens, system.network.decoder.n_labels
    # A transformer may have more embeddings than its tokenizer has tokens.
    n_needed = saved.encoder.n_tokens
    fits = n_words >= n_needed if saved.config.encoder.is_pretrained else n_words == n_needed
    if not fits or n_labels != len(saved.labels):
        raise ValueError(
            f"they are for {n_words:,} words and {n_labels:,} labels, the lists have "
            f"{saved.encoder.n_tokens:,} and {len(saved.labels):,}"
        )


def _first_line(error: Exception) -> str:
    """Say what does not fit, in one line; torch lists every array on a line of its own."""
    if isinstance(error, KeyError):
        return f"{error} is missing."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    chosen = lines[1] if len(lines) > 1 and lines[0].endswith(":") else "".join(lines[:1])
    return shorten(chosen.rstrip(". "), 160, placeholder=" ...") + "."
