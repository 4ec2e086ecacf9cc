"""Calibrate label probabilities by one curve for all labels, shifted a little for each."""

# n documents, L labels, B bins of log-odds, E bins that are not empty, S labels of the largest set

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # scipy.special is imported where it is first used

from setrnn.systems.candidates import Bools, Floats, Floats32, Ids, Ints
from setrnn.systems.true_marginals import TrueMarginals
from setrnn.tagging.trust.sets import MIN_FOR_ISOTONIC, draw_folds, fit_isotonic

# Pairs of a document and a label below this are not used to fit: there are many, and hardly any is
# right. They follow the curves: with a higher limit, the offset of a label would lift them.
MIN_TO_FIT = 1e-4
MIN_TO_BEND = 0.005  # likewise, for the knots
BIN_WIDTH = 0.1  # of log-odds
NEAREST = 1e-6  # to 0 and 1
N_STEPS = 25  # of Newton's method
# The standard deviations of what labels differ by. Labels of few documents stay near the common
# curve. Chosen on one half of valid, measured on the other: docs/calibration.md.
OFFSET_SPREAD, SLOPE_SPREAD = 0.5, 0.1
MAX_STEP = 0.5  # of an offset, in log-odds
MIN_SLOPE = 0.5
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
        """Raise ValueError if the arrays do not fit, as in a damaged file."""
        shapes = (self.common.shape, self.slopes.shape, self.values.shape)
        if shapes != ((3,), self.offsets.shape, self.knots.shape) or not self.knots.size:
            raise ValueError("the arrays of the label curves do not fit")

    def __call__(self, probs: npt.NDArray[Any], labels: Ids | None = None) -> Floats32:
        """Return calibrated probabilities, (n, L); or those of given labels, (n, S) or (E,)."""
        found = np.empty(probs.shape, dtype=np.float32)
        for rows in _slices(probs.shape):  # arrays of 64-bit numbers stay small
            offsets, slopes = self.offsets, self.slopes
            if labels is not None:
                offsets, slopes = offsets[labels[rows]], slopes[labels[rows]]
            inner, (a, b, c) = _clip(probs[rows]), self.common
            log_odds = offsets + slopes * (a + b * np.log(inner) - c * np.log1p(-inner))
            # The sigmoid: to import scipy.special takes as long as to tag a text.
            found[rows] = self.interpolate(np.exp(-np.logaddexp(0.0, -log_odds)))
        return found

    def interpolate(self, probs: npt.NDArray[Any]) -> Floats32:
        """Return the values of the line through the knots, (n, L)."""
        found = np.empty(probs.shape, dtype=np.float32)
        for rows in _slices(probs.shape):
            found[rows] = np.interp(probs[rows], self.knots, self.values)
        return found


def fit_label_curves(own: TrueMarginals) -> tuple[LabelCurves, Floats32]:
    """Fit curves to p(label | document); then knots, if they predict held-out documents better.

    Also return the calibrated probabilities (E,) of each fifth of the documents, by curves fitted
    on the others. The knots were fitted on all documents, but have few parameters.
    """
    curves, held_out = fit_smooth_curves(own)
    curves = add_knots(curves, replace(own, probs=held_out))
    return curves, curves.interpolate(held_out)


def keep_better_curves(
    old: LabelCurves | None, new: LabelCurves, held_out: Floats32, own: TrueMarginals
) -> tuple[LabelCurves, Floats32]:
    """Return the old curves, or the model's own probabilities, if the new ones are worse.

    Also return the probabilities (E,) to measure; `held_out` are those of the new curves.
    """
    n_labels = own.shape[1]
    if old is None or old.offsets.shape != (n_labels,):
        old = LabelCurves(np.array([0.0, 1.0, 1.0]), np.zeros(n_labels), np.ones(n_labels))
    if np.array_equal(old.offsets, new.offsets):  # fitted on the same documents
        return new, held_out
    kept = old(own.probs, own.label)
    is_worse = log_loss(kept, own.is_label) < log_loss(held_out, own.is_label)
    return (old, kept) if is_worse else (new, held_out)


def fit_smooth_curves(own: TrueMarginals) -> tuple[LabelCurves, Floats32]:
    """Fit curves without knots, and calibrate each fifth by curves fitted on the others: (E,)."""
    held_out = np.zeros_like(own.probs)
    folds = _folds(own)
    parts = [own.keep(is_out) for is_out in folds]
    counts = [_count(part) for part in parts]
    total = np.sum(counts, axis=0)
    for is_out, part, count in zip(folds, parts, counts, strict=True):
        held_out[is_out] = _fit_counts(total - count)(part.probs, part.label)
    return _fit_counts(total), held_out


def add_knots(curves: LabelCurves, held_out: TrueMarginals) -> LabelCurves:
    """Add isotonic regression, if it predicts held-out documents better.

    Args:
        curves: the curves without knots.
        held_out: probabilities by such curves, fitted on other documents, with the true labels.
    """
    if held_out.shape[0] < MIN_FOR_ISOTONIC:
        return curves
    gain = 0.0
    for is_out in _folds(held_out, seed=1):
        bent = _bend_by_knots(curves, held_out.keep(~is_out))
        out = held_out.keep(is_out)
        gain += log_loss(out.probs, out.is_label)
        gain -= log_loss(bent.interpolate(out.probs), out.is_label)
    return _bend_by_knots(curves, held_out) if gain > 0 else curves


def log_loss(probs: Floats32, is_label: Bools) -> float:
    """Return the sum of -log p of what is true, over (E,)."""
    loss = 0.0
    for rows in _slices(probs.shape):
        inner = _clip(probs[rows])
        loss -= float(np.log(np.where(is_label[rows], inner, 1 - inner)).sum())
    return loss


def _bend_by_knots(curves: LabelCurves, own: TrueMarginals) -> LabelCurves:
    is_used = own.probs >= MIN_TO_BEND
    if not is_used.any():
        return curves
    found = fit_isotonic(own.probs[is_used].astype(np.float64), own.is_label[is_used])
    # Below the pairs that are used, probabilities stay as they are.
    least = min(MIN_TO_BEND, found.accuracies[0])
    knots = np.concatenate([[0.0, MIN_TO_BEND], found.probabilities, [1.0]])
    values = np.concatenate([[0.0, least], found.accuracies, [1.0]])
    _, first = np.unique(knots, return_index=True)
    return replace(curves, knots=knots[first], values=values[first])


def _folds(own: TrueMarginals, seed: int = 0) -> list[Bools]:
    """Mark the pairs (E,) of the documents of each fold."""
    return [is_out[own.document] for is_out in draw_folds(own.shape[0], seed)]


def _slices(shape: tuple[int, ...]) -> Iterator[slice]:
    """Cut an array into rows of about ENTRIES_AT_ONCE numbers."""
    n_rows = max(ENTRIES_AT_ONCE // max(int(np.prod(shape[1:])), 1), 1)
    return (slice(start, start + n_rows) for start in range(0, shape[0], n_rows))


def _clip(probs: npt.NDArray[Any]) -> Floats:
    return np.clip(probs.astype(np.float64), NEAREST, 1 - NEAREST)


def _bin_centres() -> Floats:
    """Return the probability in the middle of each bin, (B,)."""
    low, high = scipy.special.logit(MIN_TO_FIT), scipy.special.logit(1 - NEAREST)
    n_bins = int(np.ceil((high - low) / BIN_WIDTH))
    return np.asarray(scipy.special.expit(low + BIN_WIDTH * (np.arange(n_bins) + 0.5)))


def _count(own: TrueMarginals) -> Floats:
    """Count the documents of each label by its probability, and those that have it: (2, L, B)."""
    n_labels, n_bins = own.shape[1], len(_bin_centres())
    counts = np.zeros((2, n_labels * n_bins))
    for rows in _slices(own.probs.shape):
        log_odds = scipy.special.logit(_clip(own.probs[rows])) - scipy.special.logit(MIN_TO_FIT)
        of_bin = log_odds / BIN_WIDTH
        is_used = of_bin >= 0
        bins = np.minimum(of_bin, n_bins - 1).astype(np.int64)
        place = (own.label[rows].astype(np.int64) * n_bins + bins)[is_used]
        for count, chosen in zip(counts, (place, place[own.is_label[rows][is_used]]), strict=True):
            count += np.bincount(chosen, minlength=len(count))
    return counts.reshape(2, n_labels, n_bins)


def _fit_counts(counts: Floats) -> LabelCurves:
    """Fit curves to counts of documents, (2, L, B)."""
    label, of_bin = np.nonzero(counts[0])  # (E,)
    n, n_true = counts[:, label, of_bin]
    probs = _bin_centres()
    # What the common curve is linear in: (B, 3)
    terms = np.stack([np.ones_like(probs), np.log(probs), -np.log1p(-probs)], axis=-1)
    common = _fit_common(terms, *counts.sum(axis=1))
    z = (terms @ common)[of_bin]
    return LabelCurves(common, *_fit_labels(z, n, n_true, label, counts.shape[1]))


def _fit_common(terms: Floats, n: Floats, n_true: Floats) -> Floats:
    """Fit a, b and c by maximum likelihood; a prior keeps them near the identity."""
    for used in ([0, 1, 2], [0, 1], [0, 2]):  # without a part whose weight would be negative
        chosen = terms[:, used]
        start = np.array([0.0, 1.0, 1.0])[used]
        weights = start.copy()
        for _ in range(N_STEPS):
            found = scipy.special.expit(chosen @ weights)
            slope = chosen.T @ (n * found - n_true) + (weights - start)
            spread = n * found * (1 - found)
            curvature = (chosen * spread[:, None]).T @ chosen + np.eye(len(used))
            weights = weights - np.clip(np.linalg.solve(curvature, slope), -1.0, 1.0)
        if (weights[1:] > 0).all():
            common = np.zeros(3)
            common[used] = weights
            return common
    return np.array([0.0, 1.0, 1.0])  # probabilities say nothing: they stay as they are


def _fit_labels(
    z: Floats, n: Floats, n_true: Floats, label: Ints, n_labels: int
) -> tuple[Floats, Floats]:
    """Fit an offset and a slope for each label to the log-odds z (E,) of the common curve."""

    def sum_up(values: Floats) -> Floats:
        return np.bincount(label, values, n_labels).astype(np.float64)

    offsets, slopes = np.zeros(n_labels), np.ones(n_labels)
    for _ in range(N_STEPS):
        found = scipy.special.expit(offsets[label] + slopes[label] * z)
        off, spread = n * found - n_true, n * found * (1 - found)
        to_offset = sum_up(off) + offsets / OFFSET_SPREAD**2
        to_slope = sum_up(off * z) + (slopes - 1) / SLOPE_SPREAD**2
        h_offset = sum_up(spread) + 1 / OFFSET_SPREAD**2
        h_slope = sum_up(spread * z * z) + 1 / SLOPE_SPREAD**2
        h_both = sum_up(spread * z)
        scale = h_offset * h_slope - h_both**2
        step = (h_slope * to_offset - h_both * to_slope) / scale
        offsets = offsets - np.clip(step, -MAX_STEP, MAX_STEP)
        step = (h_offset * to_slope - h_both * to_offset) / scale
        slopes = slopes - np.clip(step, -SLOPE_SPREAD, SLOPE_SPREAD)
        slopes = np.maximum(slopes, MIN_SLOPE)
    return offsets, slopes
