"""Fit a scaling on documents whose true sets are known."""

# n documents, K candidates

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from setrnn.systems.rules import MANY_SETS
from setrnn.tagging.calibration.isotonic import fit_isotonic
from setrnn.tagging.calibration.scaling import Scaling
from setrnn.tagging.calibration.temperature import fit_temperature

LEAST_FOR_ISOTONIC = 500
N_FOLDS = 5

Floats = npt.NDArray[np.float64]
Ranks = npt.NDArray[np.int64]  # which candidate is the true set; -1: none


def fit_scaling(log_probs: Floats, true_rank: Ranks, n_candidates: int = MANY_SETS) -> Scaling:
    """Fit a temperature, and isotonic regression where it predicts unseen documents better.

    Args:
        log_probs: of the candidates, by falling probability, (n, K).
        true_rank: which of them is the true set, (n,); -1 where none is.
        n_candidates: how many of them to take.
    """
    simple = _fit(log_probs, true_rank, n_candidates, with_isotonic=False)
    if len(log_probs) < LEAST_FOR_ISOTONIC:
        return simple
    full = _fit(log_probs, true_rank, n_candidates, with_isotonic=True)
    is_better = _held_out_loss(full, log_probs, true_rank) < _held_out_loss(
        simple, log_probs, true_rank
    )
    return full if is_better else simple


def held_out(
    scaling: Scaling, log_probs: Floats, true_rank: Ranks
) -> Iterator[tuple[npt.NDArray[np.bool_], Scaling]]:
    """Fit the same kind of scaling without each fifth of the documents: that fifth, and it."""
    of_fold = np.random.default_rng(0).permutation(len(log_probs)) % N_FOLDS
    for fold in range(N_FOLDS):
        is_out = of_fold == fold
        with_isotonic = scaling.isotonic is not None
        kept = log_probs[~is_out], true_rank[~is_out]
        yield is_out, _fit(*kept, scaling.n_candidates, with_isotonic)


def _fit(log_probs: Floats, true_rank: Ranks, n_candidates: int, with_isotonic: bool) -> Scaling:
    log_probs = log_probs[:, :n_candidates]
    true_rank = np.where(true_rank < n_candidates, true_rank, -1)
    scaling = Scaling(n_candidates, fit_temperature(log_probs, true_rank))
    if not with_isotonic:
        return scaling
    isotonic = fit_isotonic(_first_prob(scaling, log_probs), true_rank == 0)
    return Scaling(n_candidates, scaling.temperature, isotonic)


def _first_prob(scaling: Scaling, log_probs: Floats) -> Floats:
    scaled, _ = scaling.apply(log_probs, np.zeros((len(log_probs), 0)))
    return np.exp(scaled[:, 0])


def _held_out_loss(scaling: Scaling, log_probs: Floats, true_rank: Ranks) -> float:
    """Sum -log p of whether the first candidate is right, of documents it was not fitted on."""
    loss = 0.0
    for is_out, fitted in held_out(scaling, log_probs, true_rank):
        probs = np.clip(_first_prob(fitted, log_probs[is_out]), 1e-12, 1 - 1e-12)
        loss -= float(np.log(np.where(true_rank[is_out] == 0, probs, 1 - probs)).sum())
    return loss
