"""Fit a scaling on documents whose true sets are known."""

# n documents, K candidates

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from setrnn.calibration.isotonic import fit_isotonic
from setrnn.calibration.scaling import Scaling
from setrnn.calibration.temperature import fit_temperature

N_CANDIDATES = 12  # the beam of the searches: none has more
LEAST_FOR_ISOTONIC = 500
N_FOLDS = 5

Floats = npt.NDArray[np.float64]
Ranks = npt.NDArray[np.int64]  # which candidate is the true set; -1: none


def fit_scaling(log_probs: Floats, true_rank: Ranks, n_candidates: int = N_CANDIDATES) -> Scaling:
    """Fit a temperature, and isotonic regression where it predicts unseen documents better.

    Args:
        log_probs: of the candidates, by falling probability, (n, K).
        true_rank: which of them is the true set, (n,); -1 where none is.
        n_candidates: how many of them to take.
    """
    log_probs = log_probs[:, :n_candidates]
    true_rank = np.where(true_rank < log_probs.shape[1], true_rank, -1)
    simple = _fit(log_probs, true_rank, n_candidates, with_isotonic=False)
    if len(log_probs) < LEAST_FOR_ISOTONIC:
        return simple
    losses = {False: 0.0, True: 0.0}
    of_fold = folds(len(log_probs))
    for fold in range(N_FOLDS):
        is_out = of_fold == fold
        for with_isotonic in losses:
            scaling = _fit(log_probs[~is_out], true_rank[~is_out], n_candidates, with_isotonic)
            losses[with_isotonic] += _loss(scaling, log_probs[is_out], true_rank[is_out] == 0)
    is_better = losses[True] < losses[False]
    return _fit(log_probs, true_rank, n_candidates, with_isotonic=True) if is_better else simple


def folds(n_documents: int) -> npt.NDArray[np.int64]:
    """Return the fold of each document, the same each time."""
    return np.random.default_rng(0).permutation(n_documents) % N_FOLDS


def _fit(log_probs: Floats, true_rank: Ranks, n_candidates: int, with_isotonic: bool) -> Scaling:
    scaling = Scaling(n_candidates, fit_temperature(log_probs, true_rank))
    if not with_isotonic:
        return scaling
    isotonic = fit_isotonic(_first_prob(scaling, log_probs), true_rank == 0)
    return Scaling(n_candidates, scaling.temperature, isotonic)


def _first_prob(scaling: Scaling, log_probs: Floats) -> Floats:
    scaled, _ = scaling.apply(log_probs, np.zeros((len(log_probs), 0)))
    return np.exp(scaled[:, 0])


def _loss(scaling: Scaling, log_probs: Floats, is_right: npt.NDArray[np.bool_]) -> float:
    """Sum -log p of whether the first candidate is right."""
    probs = np.clip(_first_prob(scaling, log_probs), 1e-12, 1 - 1e-12)
    return float(-np.log(np.where(is_right, probs, 1 - probs)).sum())
