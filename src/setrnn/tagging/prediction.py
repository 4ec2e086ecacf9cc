"""What is predicted for a document: a set, its probability, and what can be said for it."""

# n documents, S labels of the largest set

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setrnn.systems.candidates import ScoredSet
from setrnn.systems.rules import SetCandidates


@dataclass(frozen=True)
class Certificate:
    """What the search for a most probable set can say for it."""

    proved: bool  # no set at all is more probable
    pruned_mass: float  # the probability of all that was pruned


@dataclass(frozen=True)
class Prediction:
    """What is predicted for a document, and the sets that were likely besides."""

    labels: tuple[str, ...]
    probability: float
    alternatives: tuple[ScoredSet, ...] = ()
    accepted: bool | None = None  # None: the model has no acceptance for the rule
    certificate: Certificate | None = None  # of set-rnn-exact, where the most probable is given


@dataclass(frozen=True)
class Marginals:
    """p(label | text), and how much of the probability of all sets it does not rest on."""

    probs: npt.NDArray[np.float32]  # texts x labels, in the order of the model's labels
    missing_mass: npt.NDArray[np.float64]  # a text: taken to be spread like the rest


def certificates_of(
    labels: npt.NDArray[np.int32], candidates: SetCandidates | None
) -> list[Certificate | None]:
    """Return what the search says, where the predicted set (n, S) is the first candidate."""
    if candidates is None or candidates.certificates is None:
        return [None] * len(labels)
    found = candidates.certificates
    is_first = candidates.ranks(labels) == 0
    return [
        Certificate(bool(proved), float(pruned)) if first else None
        for first, proved, pruned in zip(is_first, found.is_proved, found.pruned, strict=True)
    ]
