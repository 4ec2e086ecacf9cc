"""Calibrate label probabilities: one curve for all labels, moved a little for each label."""

# n documents, L labels, E pairs of a document and a label, S labels of the largest set

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from setrnn.systems.candidates import Bools, Floats, Floats32, Ids

N_FOLDS = 5
LEAST_FOR_KNOTS = 500  # documents
# Pairs below this are not used to fit: there are many, and they are hardly ever right.
LEAST_TO_FIT = 0.005
NEAREST = 1e-6  # to 0 and 1
N_STEPS = 25  # of Newton's method
# The standard deviations of what labels differ by. Labels of few documents stay near the common
# curve. Chosen on one half of valid, measured on the other: docs/calibration.md.
OFFSET_SPREAD, SLOPE_SPREAD = 0.5, 0.1
LARGEST_STEP = 0.5  # of an offset, in log-odds
LEAST_SLOPE = 0.5
MOST_FOR_COMMON = 1 << 20  # pairs
ENTRIES_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class LabelCurves:
    """From a model's p(label | document) to calibrated ones.

    The log-odds are offset + slope * z, with an offset and a slope for each label, and with
    z = a + b log p - c log(1 - p) for all labels (beta calibration, Kull et al. 2017). Higher
    probabilities of a label stay higher. If that predicts other documents better, a line through
    knots follows, common to all labels (isotonic regression).
    """

    common: Floats  # (3,) a, b and c
    offsets: Floats  # (L,)
    slopes: Floats  # (L,)
    knots: Floats = field(default_factory=lambda: np.array([0.0, 1.0]))  # increasing
    values: Floats = field(default_factory=lambda: np.array([0.0, 1.0]))  # at the knots

    def __post_init__(self) -> None:
        """Raise ValueError if a curve decreases or the shapes do not fit."""
        is_shaped = self.common.shape == (3,)
        is_shaped = is_shaped and self.offsets.shape == self.slopes.shape == (self.slopes.size,)
        weights = self.common[1:]
        if not is_shaped or (weights < 0).any() or not weights.any() or (self.slopes <= 0).any():
            raise ValueError("the curves of label probabilities must increase")
        is_line = self.knots.shape == self.values.shape == (self.knots.size,)
        if not is_line or (np.diff(self.knots) <= 0).any() or (np.diff(self.values) < 0).any():
            raise ValueError("the knots of label probabilities must increase")

    def __call__(self, probs: npt.NDArray[Any], labels: Ids | None = None) -> Floats32:
        """Return calibrated probabilities, (n, L); or (n, S), of the labels (n, S) with -1."""
        found = np.empty(probs.shape, dtype=np.float32)
        for rows in _slices(probs.shape):  # arrays of 64-bit numbers stay small
            offsets, slopes = self.offsets, self.slopes
            if labels is not None:
                offsets, slopes = offsets[labels[rows]], slopes[labels[rows]]
            found[rows] = self.interpolate(expit(offsets + slopes * self._bend(probs[rows])))
        return found

    def _bend(self, probs: npt.NDArray[Any]) -> Floats:
        """Return the log-odds of the common curve."""
        inner = np.clip(probs.astype(np.float64), NEAREST, 1 - NEAREST)
        a, b, c = self.common
        return np.asarray(a + b * np.log(inner) - c * np.log1p(-inner))

    def interpolate(self, probs: npt.NDArray[Any]) -> Floats32:
        """Return the values of the line through the knots, (n, L)."""
        found = np.empty(probs.shape, dtype=np.float32)
        for rows in _slices(probs.shape):
            found[rows] = np.interp(probs[rows], self.knots, self.values)
        return found


def fit_label_curves(probs: Floats32, is_label: Bools) -> LabelCurves:
    """Fit curves to probabilities and true labels, both (n, L)."""
    is_used = probs >= LEAST_TO_FIT
    label = np.nonzero(is_used)[1].astype(np.int32)  # (E,)
    used, is_true = probs[is_used], is_label[is_used]
    some = slice(None, None, -(-len(used) // MOST_FOR_COMMON) or 1)
    common = _fit_common(_terms(used[some]), is_true[some].astype(np.float64))
    curves = LabelCurves(common, np.zeros(probs.shape[1]), np.ones(probs.shape[1]))
    offsets, slopes = _fit_labels(curves._bend(used), is_true, label, probs.shape[1])
    return replace(curves, offsets=offsets, slopes=slopes)


def with_knots(curves: LabelCurves, held_out: Floats32, is_label: Bools) -> LabelCurves:
    """Add isotonic regression, if it predicts held-out documents better.

    Args:
        curves: the curves without knots.
        held_out: probabilities by such curves, fitted on other documents, (n, L).
        is_label: the true labels, (n, L).
    """
    if len(held_out) < LEAST_FOR_KNOTS:
        return curves
    gain = 0.0
    for is_out in _folds(len(held_out), seed=1):
        bent = _bend_by_knots(curves, held_out[~is_out], is_label[~is_out])
        before = held_out[is_out]
        gain += log_loss(before, is_label[is_out])
        gain -= log_loss(bent.interpolate(before), is_label[is_out])
    return _bend_by_knots(curves, held_out, is_label) if gain > 0 else curves


def log_loss(probs: Floats32, is_label: Bools) -> float:
    """Return the sum of -log p of what is true, over (n, L)."""
    loss = 0.0
    for rows in _slices(probs.shape):
        inner = np.clip(probs[rows].astype(np.float64), NEAREST, 1 - NEAREST)
        loss -= float(np.log(np.where(is_label[rows], inner, 1 - inner)).sum())
    return loss


def _bend_by_knots(curves: LabelCurves, probs: Floats32, is_label: Bools) -> LabelCurves:
    knots, values = _fit_knots(probs, is_label)
    return replace(curves, knots=knots, values=values)


def _fit_knots(probs: Floats32, is_label: Bools) -> tuple[Floats, Floats]:
    from setrnn.tagging.calibration import fit_isotonic  # it imports this file

    is_used = probs >= LEAST_TO_FIT
    if not is_used.any():
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    found = fit_isotonic(probs[is_used].astype(np.float64), is_label[is_used])
    knots = np.concatenate([[0.0], found.probabilities, [1.0]])
    values = np.concatenate([[0.0], found.accuracies, [1.0]])
    _, first = np.unique(knots, return_index=True)
    return knots[first], values[first]


def held_out_label_probs(probs: Floats32, is_label: Bools) -> Floats32:
    """Calibrate each fifth of the documents with curves fitted on the others: (n, L)."""
    found = np.zeros_like(probs)
    for is_out in _folds(len(probs)):
        found[is_out] = fit_label_curves(probs[~is_out], is_label[~is_out])(probs[is_out])
    return found


def _folds(n: int, seed: int = 0) -> Iterator[Bools]:
    of_fold = np.random.default_rng(seed).permutation(n) % N_FOLDS
    return (of_fold == fold for fold in range(N_FOLDS))


def _slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """Cut an array into rows of about ENTRIES_AT_ONCE numbers."""
    n_rows = max(ENTRIES_AT_ONCE // max(int(np.prod(shape[1:])), 1), 1)
    return (slice(start, start + n_rows) for start in range(0, shape[0], n_rows))


def _terms(probs: npt.NDArray[Any]) -> Floats:
    """Return what the common curve is linear in: (..., 3)."""
    inner = np.clip(probs.astype(np.float64), NEAREST, 1 - NEAREST)
    return np.stack([np.ones_like(inner), np.log(inner), -np.log1p(-inner)], axis=-1)


def _fit_common(terms: Floats, is_true: Floats) -> Floats:
    """Fit a, b and c by maximum likelihood; a prior keeps them near the identity."""
    for used in ([0, 1, 2], [0, 1], [0, 2]):  # without a part whose weight would be negative
        chosen = terms[:, used]
        start = np.array([0.0, 1.0, 1.0])[used]
        weights = start.copy()
        for _ in range(N_STEPS):
            found = expit(chosen @ weights)
            slope = chosen.T @ (found - is_true) + (weights - start)
            curvature = (chosen * (found * (1 - found))[:, None]).T @ chosen + np.eye(len(used))
            weights = weights - np.clip(np.linalg.solve(curvature, slope), -1.0, 1.0)
        if (weights[1:] > 0).all():
            common = np.zeros(3)
            common[used] = weights
            return common
    return np.array([0.0, 1.0, 1.0])  # probabilities say nothing: they stay as they are


def _fit_labels(
    z: Floats, is_true: Bools, label: npt.NDArray[np.int32], n_labels: int
) -> tuple[Floats, Floats]:
    """Fit an offset and a slope for each label to the log-odds z (E,) of the common curve."""

    def sum_up(values: Floats) -> Floats:
        return np.bincount(label, values, n_labels).astype(np.float64)

    offsets, slopes = np.zeros(n_labels), np.ones(n_labels)
    for _ in range(N_STEPS):
        found = expit(offsets[label] + slopes[label] * z)
        off, spread = found - is_true, found * (1 - found)
        to_offset = sum_up(off) + offsets / OFFSET_SPREAD**2
        to_slope = sum_up(off * z) + (slopes - 1) / SLOPE_SPREAD**2
        h_offset = sum_up(spread) + 1 / OFFSET_SPREAD**2
        h_slope = sum_up(spread * z * z) + 1 / SLOPE_SPREAD**2
        h_both = sum_up(spread * z)
        scale = h_offset * h_slope - h_both**2
        step = (h_slope * to_offset - h_both * to_slope) / scale
        offsets = offsets - np.clip(step, -LARGEST_STEP, LARGEST_STEP)
        step = (h_offset * to_slope - h_both * to_offset) / scale
        slopes = slopes - np.clip(step, -SLOPE_SPREAD, SLOPE_SPREAD)
        slopes = np.maximum(slopes, LEAST_SLOPE)
    return offsets, slopes
