"""From a model's set probabilities to calibrated ones: a temperature, then isotonic."""

# n documents, K candidates, G other sets

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from setrnn.tagging.calibration.isotonic import Isotonic
from setrnn.tagging.calibration.temperature import with_another_set

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scaling:
    """A distribution over the first candidates and "another set", made to fit what was true.

    The number of candidates is part of it: with more or fewer, the same temperature would give
    other probabilities.
    """

    n_candidates: int
    temperature: float
    isotonic: Isotonic | None = None  # of the most probable set

    def __post_init__(self) -> None:
        """Refuse what gives no distribution."""
        if self.n_candidates < 1 or not 0 < self.temperature < np.inf:
            raise ValueError("a scaling needs a candidate and a positive temperature")

    def apply(self, candidates: Floats, others: Floats) -> tuple[Floats, Floats]:
        """Return calibrated log-probabilities of candidates (n, K) and of other sets (n, G).

        Candidates come and stay by falling probability.
        """
        outcomes = with_another_set(candidates[:, : self.n_candidates])
        # A set that is no candidate cannot have more than all such sets together.
        rest = np.concatenate([candidates[:, self.n_candidates :], others], axis=1)
        rest = np.minimum(rest, outcomes[:, -1:])
        log_total = logsumexp(outcomes / self.temperature, axis=1, keepdims=True)
        outcomes = outcomes / self.temperature - log_total
        scaled = np.concatenate([outcomes[:, :-1], rest / self.temperature - log_total], axis=1)
        if self.isotonic is not None:
            log_rest = logsumexp(outcomes[:, 1:], axis=1)
            scaled = _with_first(scaled, log_rest, self.isotonic)
        return scaled[:, : candidates.shape[1]], scaled[:, candidates.shape[1] :]

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "n_candidates": self.n_candidates,
            "temperature": self.temperature,
            "isotonic": None if self.isotonic is None else self.isotonic.as_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scaling:
        """Build from plain JSON values."""
        isotonic = values["isotonic"]
        return cls(
            int(values["n_candidates"]),
            float(values["temperature"]),
            None if isotonic is None else Isotonic.from_dict(isotonic),
        )


def _with_first(scaled: Floats, log_rest: Floats, isotonic: Isotonic) -> Floats:
    """Give the first set its accuracy; the others (and another set) share the rest as before.

    None gets more than the first: what is above that falls to another set.
    """
    first = isotonic(np.exp(scaled[:, 0]))
    log_first, log_share = np.log(first), np.log1p(-first) - log_rest
    others = np.minimum(scaled[:, 1:] + log_share[:, None], log_first[:, None])
    return np.concatenate([log_first[:, None], others], axis=1)
