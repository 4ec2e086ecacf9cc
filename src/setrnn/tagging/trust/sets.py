"""Calibrate set probabilities: a temperature, then isotonic regression for the first set."""

# n documents, K candidates, G other sets, B knots, S labels of the largest set

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy  # scipy.special is imported where it is first used

from setrnn.systems.candidates import Bools, Floats, Ids, Ints, SetCandidates
from setrnn.systems.rules import MANY_SETS

MIN_MISSING = 1e-6  # "another set" is never impossible: one such document would decide T
TEMPERATURES = (0.05, 20.0)  # the least and the greatest
MIN_FOR_ISOTONIC = 500  # documents
N_FOLDS = 5
MAX_CANDIDATES, MIN_TEMPERATURE = 10_000, 1e-3

Ranks = Ints  # the rank of the true set among the candidates, or -1


@dataclass(frozen=True)
class Isotonic:
    """A nondecreasing line through knots, constant outside of them."""

    probabilities: Floats  # (B,) increasing
    accuracies: Floats  # (B,) nondecreasing, between 0 and 1

    def __post_init__(self) -> None:
        """Raise ValueError if the knots do not increase or are not probabilities."""
        x, y = self.probabilities, self.accuracies
        is_line = x.shape == y.shape == (x.size,) and x.size > 0
        if not (is_line and (np.diff(x) > 0).all() and (np.diff(y) >= 0).all()):
            raise ValueError("the knots of an isotonic regression must increase")
        if not ((y > 0) & (y < 1)).all():
            raise ValueError("the accuracies of an isotonic regression lie between 0 and 1")

    def __call__(self, probs: Floats) -> Floats:
        """Return the accuracy of sets with these probabilities."""
        return np.interp(probs, self.probabilities, self.accuracies)


def fit_isotonic(probs: Floats, is_right: Bools) -> Isotonic:
    """Fit an isotonic regression to probabilities and whether the sets were right, both (n,).

    Each level of the regression has one knot in its middle, so that different probabilities
    between the first and the last knot have different accuracies. k right of n count as
    (k + 1/2) / (n + 1): never 0, never 1.
    """
    from sklearn.isotonic import IsotonicRegression, isotonic_regression

    fitted = IsotonicRegression().fit(probs, is_right.astype(np.float64)).predict(probs)
    _, level = np.unique(fitted.round(12), return_inverse=True)
    n = np.bincount(level)
    smoothed = (np.bincount(level, weights=is_right) + 0.5) / (n + 1)
    # Smoothing changes small levels most; levels that then decrease are merged.
    accuracies, merged = np.unique(
        np.round(isotonic_regression(smoothed, sample_weight=n), 12), return_inverse=True
    )
    middle = np.bincount(merged[level], weights=probs) / np.bincount(merged[level])
    return Isotonic(middle, accuracies)


def with_another_set(log_probs: Floats) -> Floats:
    """Append the probability that the candidates (n, K) leave out: (n, K + 1)."""
    missing = np.maximum(1 - np.exp(log_probs).sum(axis=1, keepdims=True), MIN_MISSING)
    return np.concatenate([log_probs, np.log(missing)], axis=1)


def fit_temperature(log_probs: Floats, true_rank: Ranks) -> float:
    """Return the temperature T of maximum likelihood: p_T is proportional to p^(1/T).

    Args:
        log_probs: log-probabilities of the candidates, (n, K).
        true_rank: which candidate is the true set, (n,); -1 if none is.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and needed only here

    outcomes = with_another_set(log_probs)
    document = np.arange(len(outcomes))  # rank -1 reads the last outcome: another set

    def loss(log_temperature: float) -> float:
        scaled = scipy.special.log_softmax(outcomes / np.exp(log_temperature), axis=1)
        return float(-scaled[document, true_rank].mean())

    # The loss is convex in 1/T: it has one minimum.
    bounds = (math.log(TEMPERATURES[0]), math.log(TEMPERATURES[1]))
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))


@dataclass(frozen=True)
class Scaling:
    """Calibrated probabilities of a document's candidates and of "another set".

    The number of candidates belongs to the scaling: with more or fewer candidates, the same
    temperature would give other probabilities.
    """

    n_candidates: int
    temperature: float
    isotonic: Isotonic | None = None  # for the most probable set

    def __post_init__(self) -> None:
        """Raise ValueError if the values do not make a distribution, as in a damaged file."""
        if not 1 <= self.n_candidates <= MAX_CANDIDATES:
            raise ValueError(f"a scaling needs 1 to {MAX_CANDIDATES:,} candidates")
        if not MIN_TEMPERATURE <= self.temperature <= 1 / MIN_TEMPERATURE:
            raise ValueError("the temperature of a scaling is out of range")

    def apply(self, candidates: Floats, others: Floats) -> tuple[Floats, Floats]:
        """Return calibrated log-probabilities of candidates (n, K) and of other sets (n, G).

        The candidates are in descending order of probability, before and after.
        """
        outcomes = with_another_set(candidates[:, : self.n_candidates])
        # A set that is not a candidate has at most the probability of all such sets together.
        rest = np.concatenate([candidates[:, self.n_candidates :], others], axis=1)
        rest = np.minimum(rest, outcomes[:, -1:])
        log_total = np.logaddexp.reduce(outcomes / self.temperature, axis=1, keepdims=True)
        outcomes = outcomes / self.temperature - log_total
        scaled = np.concatenate([outcomes[:, :-1], rest / self.temperature - log_total], axis=1)
        if self.isotonic is not None:
            log_rest = np.logaddexp.reduce(outcomes[:, 1:], axis=1)
            scaled = _replace_first(scaled, log_rest, self.isotonic)
        return scaled[:, : candidates.shape[1]], scaled[:, candidates.shape[1] :]

    def calibrate(
        self, candidates: SetCandidates, labels: Ids, log_probs: Floats
    ) -> tuple[SetCandidates, Floats]:
        """Calibrate the candidates and the predicted sets (n, S) with log-probabilities (n,).

        A predicted set need not be a candidate. The order of the candidates does not change.
        """
        scaled, others = self.apply(candidates.log_probs, log_probs[:, None])
        rank = candidates.ranks(labels)
        of_rank = scaled[np.arange(len(scaled)), np.maximum(rank, 0)]
        predicted = np.where(rank >= 0, of_rank, others[:, 0])
        return SetCandidates(candidates.labels, scaled), predicted

    def first_probs(self, log_probs: Floats) -> Floats:
        """Return the calibrated probability of the first candidate, (n,)."""
        scaled, _ = self.apply(log_probs, np.zeros((len(log_probs), 0)))
        return np.exp(scaled[:, 0])


def _replace_first(scaled: Floats, log_rest: Floats, isotonic: Isotonic) -> Floats:
    """Give the first set its accuracy; the other sets share the rest in the same proportions.

    No other set gets more than the first: "another set" gets the remainder.
    """
    first = isotonic(np.exp(scaled[:, 0]))
    log_first, log_share = np.log(first), np.log1p(-first) - log_rest
    others = np.minimum(scaled[:, 1:] + log_share[:, None], log_first[:, None])
    return np.concatenate([log_first[:, None], others], axis=1)


def fit_scaling(log_probs: Floats, true_rank: Ranks) -> Scaling:
    """Fit a temperature, and isotonic regression if it predicts held-out documents better.

    Args:
        log_probs: log-probabilities of the candidates in descending order, (n, K).
        true_rank: which candidate is the true set, (n,); -1 if none is.
    """
    simple = _fit(log_probs, true_rank, with_isotonic=False)
    if len(log_probs) < MIN_FOR_ISOTONIC:
        return simple
    full = _fit(log_probs, true_rank, with_isotonic=True)
    losses = [_held_out_loss(each, log_probs, true_rank) for each in (full, simple)]
    return full if losses[0] < losses[1] else simple


def keep_better(old: Scaling | None, new: Scaling, log_probs: Floats, true_rank: Ranks) -> Scaling:
    """Return the old scaling, or the model's own probabilities, if the new one is worse.

    The new one is measured on each fifth of the documents, fitted on the others.
    """
    if old is not None and old.temperature == new.temperature:  # fitted on the same documents
        return new
    old = old or Scaling(MANY_SETS, 1.0)
    is_worse = _loss(old, log_probs, true_rank) < _held_out_loss(new, log_probs, true_rank)
    return old if is_worse else new


def held_out(
    scaling: Scaling, log_probs: Floats, true_rank: Ranks
) -> Iterator[tuple[Bools, Scaling]]:
    """Yield each fifth of the documents with a scaling that is fitted on the other four."""
    with_isotonic = scaling.isotonic is not None
    for is_out in draw_folds(len(log_probs)):
        yield is_out, _fit(log_probs[~is_out], true_rank[~is_out], with_isotonic)


def draw_folds(n_documents: int, seed: int = 0) -> list[Bools]:
    """Draw folds, and mark the documents (n,) of each."""
    of_fold = np.random.default_rng(seed).permutation(n_documents) % N_FOLDS
    return [of_fold == fold for fold in range(N_FOLDS)]


def _fit(log_probs: Floats, true_rank: Ranks, with_isotonic: bool) -> Scaling:
    log_probs = log_probs[:, :MANY_SETS]
    true_rank = np.where(true_rank < MANY_SETS, true_rank, -1)
    scaling = Scaling(MANY_SETS, fit_temperature(log_probs, true_rank))
    if not with_isotonic:
        return scaling
    isotonic = fit_isotonic(scaling.first_probs(log_probs), true_rank == 0)
    return replace(scaling, isotonic=isotonic)


def _held_out_loss(scaling: Scaling, log_probs: Floats, true_rank: Ranks) -> float:
    """Return the log loss of "the first candidate is right", over held-out documents."""
    parts = held_out(scaling, log_probs, true_rank)
    return sum(_loss(fitted, log_probs[is_out], true_rank[is_out]) for is_out, fitted in parts)


def _loss(scaling: Scaling, log_probs: Floats, true_rank: Ranks) -> float:
    """Return the log loss of "the first candidate is right"."""
    probs = np.clip(scaling.first_probs(log_probs), 1e-12, 1 - 1e-12)
    return -float(np.log(np.where(true_rank == 0, probs, 1 - probs)).sum())
