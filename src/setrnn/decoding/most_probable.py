"""Rules `set` and `sequence`: the first candidate, which is the most probable."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from setrnn.decoding.candidates import SetCandidates


def choose(candidates: SetCandidates) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return the labels (n, S) and the log-probability (n,) of each document's best set."""
    return candidates.labels[:, 0], candidates.log_probs[:, 0]
