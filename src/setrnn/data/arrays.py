"""The arrays of a model: read from one safetensors file, and checked before they are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setrnn.errors import ModelError


def load_arrays(file: Path) -> dict[str, npt.NDArray[Any]]:
    """Read all arrays of a file; raise ModelError if one holds NaN or infinite values."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays: dict[str, npt.NDArray[Any]] = load_file(file)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{file} holds no arrays. Train or copy the model again.") from error
    for name, array in arrays.items():
        # The least and the greatest value are NaN if any value is: no copy of the array is made.
        has_values = array.dtype.kind == "f" and array.size
        if has_values and not (np.isfinite(array.min()) and np.isfinite(array.max())):
            raise ModelError(
                f"{file}: '{name}' holds values that are not finite numbers (NaN or infinite). "
                "Train or copy the model again."
            )
    return arrays
