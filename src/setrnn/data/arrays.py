"""The arrays of a model: read from one safetensors file, and checked before they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from setrnn.errors import ModelError

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
