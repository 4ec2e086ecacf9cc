"""From a model's set probabilities to calibrated ones: a temperature, then isotonic."""

# n documents, K candidates, G other sets

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from setrnn.calibration.isotonic import Isotonic
from setrnn.calibration.temperature import with_another_set

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
        rest = rest / self.temperature - log_total
        if self.isotonic is not None:
            outcomes, log_share = _with_first(outcomes, self.isotonic)
            rest = rest + log_share
        n_rest = candidates.shape[1] - (outcomes.shape[1] - 1)
        scaled = np.concatenate([outcomes[:, :-1], rest[:, :n_rest]], axis=1)
        return scaled, rest[:, n_rest:]

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


def _with_first(outcomes: Floats, isotonic: Isotonic) -> tuple[Floats, Floats]:
    """Give the first outcome its accuracy; the others share the rest as before, by (n, 1)."""
    log_rest = logsumexp(outcomes[:, 1:], axis=1)  # finite: another set is never impossible
    first = isotonic(np.exp(outcomes[:, 0]))
    if outcomes.shape[1] > 2:
        # Not below the second: q >= (1 - q) r, where r is the second's share of the rest.
        second = np.exp(outcomes[:, 1] - log_rest)
        first = np.maximum(first, second / (1 + second))
    log_share = np.log1p(-first) - log_rest
    others = outcomes[:, 1:] + log_share[:, None]
    log_first = np.log(first)
    if outcomes.shape[1] > 2:
        log_first = np.maximum(log_first, others[:, 0])  # rounding must not turn a tie
    return np.concatenate([log_first[:, None], others], axis=1), log_share[:, None]
