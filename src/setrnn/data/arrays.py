"""The arrays of a model: read from one safetensors file, and checked before they are used."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.errors import ModelError

LEAST_SHARED = 1 << 16  # bytes of an array
LARGEST = 1e12  # of a weight: products of larger ones are infinite in single precision


def load_arrays(file: Path) -> dict[str, npt.NDArray[Any]]:
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
        if has_values and not (float(array.min()) >= -LARGEST and float(array.max()) <= LARGEST):
            raise ModelError(
                f"{file}: '{name}' holds values that are not finite numbers, or beyond "
                f"{LARGEST:g}. Train or copy the model again."
            )
    return arrays


def share_arrays(
    arrays: Mapping[str, npt.NDArray[Any]], folder: Path
) -> dict[str, npt.NDArray[Any]]:
    """Return equal arrays whose memory is shared by all processes that name the same folder.

    The first process writes them there; later ones must have the same arrays. In a safetensors
    file, which could be mapped itself, arrays start at any place, and products of them have other
    last digits; and people may overwrite it.
    """
    large = sorted(name for name, array in arrays.items() if array.nbytes >= LEAST_SHARED)
    files = {name: folder / f"{number}.npy" for number, name in enumerate(large)}
    try:
        if not folder.exists():
            _write_arrays({file.name: arrays[name] for name, file in files.items()}, folder)
        mapped = {name: np.load(file, mmap_mode="c") for name, file in files.items()}
    except OSError:  # no room, or removed meanwhile
        return dict(arrays)
    return {**arrays, **{name: np.asarray(array) for name, array in mapped.items()}}


def _write_arrays(arrays: Mapping[str, npt.NDArray[Any]], folder: Path) -> None:
    """Write a folder of arrays, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(mkdtemp(dir=folder.parent))
    try:
        for name, array in arrays.items():
            np.save(temporary / name, array)
        temporary.rename(folder)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not folder.exists():  # written by another process
            raise
