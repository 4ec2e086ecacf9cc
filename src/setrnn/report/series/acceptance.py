"""Which share of the documents is accepted at a threshold, and how many of those are right."""

# n documents, T thresholds

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class AcceptanceCurve:
    """What each threshold accepts, from the most to the least probable document."""

    threshold: Values  # (T,) falling
    share: Values  # (T,) of the documents, rising to 1
    accuracy: Values  # (T,) of the accepted

    def accuracy_at(self, shares: Values) -> Values:
        """Return the accuracy at given shares; equally probable documents are taken by chance."""
        right = np.interp(
            shares, np.append(0, self.share), np.append(0, self.share * self.accuracy)
        )
        return np.asarray(right / shares, dtype=np.float64)


def acceptance_curve(probs: Values, is_right: npt.NDArray[np.bool_]) -> AcceptanceCurve:
    """Accept documents (n,) by falling probability, those of the same together."""
    order = np.argsort(-probs, kind="stable")
    falling, n_right = probs[order], np.cumsum(is_right[order])
    last = np.append(np.flatnonzero(np.diff(falling)), len(falling) - 1)
    return AcceptanceCurve(
        threshold=falling[last],
        share=(last + 1) / len(falling),
        accuracy=n_right[last] / (last + 1),
    )


def largest_share(shares: Values, accuracy: Values, target: float) -> float | None:
    """Return the largest share that is right often enough; None where none is."""
    reaches = np.flatnonzero(accuracy >= target)
    return float(shares[reaches[-1]]) if len(reaches) else None
