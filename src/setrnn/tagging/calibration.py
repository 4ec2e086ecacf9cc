"""Calibrate set probabilities: a temperature, then isotonic regression for the first set.

The curves of label probabilities are in `label_calibration`; both are saved together.
"""

# n documents, K candidates, G other sets, B knots, S labels of the largest set

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # scipy.special is imported where it is first used

from setrnn.errors import ModelError
from setrnn.systems.candidates import Bools, Floats, Ids, Ints, SetCandidates
from setrnn.systems.rules import MANY_SETS
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.tagging.acceptance import Acceptance, LabelAcceptance, as_plain
from setrnn.tagging.label_calibration import LabelCurves

LEAST_DOCUMENTS = 100  # for a calibration
LEAST_MISSING = 1e-6  # "another set" is never impossible: one such document would decide T
TEMPERATURES = (0.05, 20.0)  # the least and the greatest
LEAST_FOR_ISOTONIC = 500  # documents
N_FOLDS = 5
MOST_CANDIDATES, LEAST_TEMPERATURE = 10_000, 1e-3  # of a calibration that is read

Ranks = Ints  # the rank of the true set among the candidates, or -1


@dataclass(frozen=True)
class Isotonic:
    """A nondecreasing line through knots, constant outside of them."""

    probabilities: Floats  # (B,) increasing
    accuracies: Floats  # (B,) nondecreasing, between 0 and 1

    def __post_init__(self) -> None:
        """Raise ValueError if the knots do not increase or are not probabilities."""
        x, y = self.probabilities, self.accuracies
        is_sound = x.shape == y.shape == (x.size,) and x.size > 0
        if not (is_sound and (np.diff(x) > 0).all() and (np.diff(y) >= 0).all()):
            raise ValueError("the knots of an isotonic regression must increase")
        if not (y > 0).all() or not (y < 1).all():
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
    missing = np.maximum(1 - np.exp(log_probs).sum(axis=1, keepdims=True), LEAST_MISSING)
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
        """Raise ValueError if the values do not make a distribution."""
        if not 1 <= self.n_candidates <= MOST_CANDIDATES or not isinstance(self.n_candidates, int):
            raise ValueError(f"a scaling needs 1 to {MOST_CANDIDATES:,} candidates")
        if not LEAST_TEMPERATURE <= self.temperature <= 1 / LEAST_TEMPERATURE:
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


def fit_scaling(log_probs: Floats, true_rank: Ranks, n_candidates: int = MANY_SETS) -> Scaling:
    """Fit a temperature, and isotonic regression if it predicts held-out documents better.

    Args:
        log_probs: log-probabilities of the candidates in descending order, (n, K).
        true_rank: which candidate is the true set, (n,); -1 if none is.
        n_candidates: how many of the candidates to use.
    """
    simple = _fit(log_probs, true_rank, n_candidates, with_isotonic=False)
    if len(log_probs) < LEAST_FOR_ISOTONIC:
        return simple
    full = _fit(log_probs, true_rank, n_candidates, with_isotonic=True)
    losses = [_held_out_loss(each, log_probs, true_rank) for each in (full, simple)]
    return full if losses[0] < losses[1] else simple


def held_out(
    scaling: Scaling, log_probs: Floats, true_rank: Ranks
) -> Iterator[tuple[Bools, Scaling]]:
    """Yield each fifth of the documents with a scaling that is fitted on the other four."""
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
    isotonic = fit_isotonic(scaling.first_probs(log_probs), true_rank == 0)
    return Scaling(n_candidates, scaling.temperature, isotonic)


def _held_out_loss(scaling: Scaling, log_probs: Floats, true_rank: Ranks) -> float:
    """Return the log loss of "the first candidate is right", over held-out documents."""
    loss = 0.0
    for is_out, fitted in held_out(scaling, log_probs, true_rank):
        probs = np.clip(fitted.first_probs(log_probs[is_out]), 1e-12, 1 - 1e-12)
        loss -= float(np.log(np.where(true_rank[is_out] == 0, probs, 1 - probs)).sum())
    return loss


@dataclass(frozen=True)
class Calibration:
    """All that is fitted after training and saved with the model, as calibration.json."""

    n_documents: int  # that it was fitted on; 0 if there are only targets, of the model before
    thresholds: Thresholds | None = None  # of the rules micro-f1 and label-f1
    # By a rule's source; by the rule itself if it has weights of its own in a mixture.
    scalings: Mapping[str, Scaling] = field(default_factory=dict)
    acceptance: Mapping[str, Acceptance] = field(default_factory=dict)  # by rule
    label_curves: LabelCurves | None = None
    label_acceptance: LabelAcceptance | None = None
    share_trained_on: float = (
        0.0  # of these documents that the model was trained on, if more than a few
    )

    @property
    def is_fitted(self) -> bool:
        """Whether it was fitted on documents."""
        return self.n_documents > 0

    def key_of(self, rule: str, source: str) -> str:
        """Return which scaling is that of a rule: its own, or that of its source."""
        return rule if rule in self.scalings else source

    def n_candidates(self, key: str) -> int:
        """Return how many candidates calibrated probabilities need."""
        return self.scalings[key].n_candidates if key in self.scalings else 1

    def apply(
        self, key: str, candidates: SetCandidates, labels: Ids, log_probs: Floats
    ) -> tuple[SetCandidates, Floats]:
        """Calibrate the candidates and the predicted sets (n, S) with log-probabilities (n,).

        A predicted set need not be a candidate. The order of the candidates does not change.
        """
        if key not in self.scalings:
            return candidates, log_probs
        scaled, others = self.scalings[key].apply(candidates.log_probs, log_probs[:, None])
        rank = candidates.ranks(labels)
        is_candidate = rank >= 0
        of_rank = scaled[np.arange(len(scaled)), np.maximum(rank, 0)]
        predicted = np.where(is_candidate, of_rank, others[:, 0])
        return SetCandidates(candidates.labels, scaled), predicted

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: the model's calibration.json."""
        return dict(as_plain(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], place: str = "calibration.json") -> Calibration:
        """Build from plain JSON values; `place` is the file to name if they are damaged."""
        if name := _find_not_finite(values):
            raise ModelError(
                f"{place}: '{name}' holds values that are not finite numbers (NaN or infinite). "
                "Remove it, and calibrate the model again."
            )
        try:
            thresholds = values["thresholds"]
            scalings, acceptance = values.get("scalings", {}), values.get("acceptance", {})
            return cls(
                int(values["n_documents"]),
                None if thresholds is None else Thresholds(**_as_arrays(thresholds)),
                {source: _read_scaling(each) for source, each in scalings.items()},
                {rule: Acceptance(**each) for rule, each in acceptance.items()},
                _read_if_there(LabelCurves, values.get("label_curves")),
                _read_if_there(LabelAcceptance, values.get("label_acceptance")),
                float(values.get("share_trained_on", 0.0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelError(
                f"{place} is damaged. Remove it, and calibrate the model again."
            ) from error

    def check_labels(self, n_labels: int, place: str = "calibration.json") -> None:
        """Raise ModelError if what it has for each label is for another number of labels."""
        of_labels = [
            *(() if self.thresholds is None else (self.thresholds.by_label,)),
            *(() if self.label_curves is None else (self.label_curves.offsets,)),
            *(() if self.label_acceptance is None else (self.label_acceptance.thresholds,)),
        ]
        for each in of_labels:
            if np.shape(each) != (n_labels,):
                raise ModelError(
                    f"{place} has thresholds of shape {np.shape(each)} for {n_labels:,} labels. "
                    "Remove it, and calibrate the model again."
                )


def _read_scaling(values: Mapping[str, Any]) -> Scaling:
    isotonic = values["isotonic"]
    read = None if isotonic is None else Isotonic(**_as_arrays(isotonic))
    return Scaling(**{**values, "isotonic": read})


def _read_if_there(kind: type[Any], values: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
    return None if values is None else kind(**_as_arrays(values))


def _find_not_finite(values: Any, name: str = "") -> str | None:  # noqa: ANN401 (JSON values)
    """Return the name of the first value that is NaN or infinite, with the names around it."""
    if isinstance(values, Mapping):
        found = (_find_not_finite(each, f"{name}.{key}") for key, each in values.items())
        return next((each for each in found if each), None)
    numbers = values if isinstance(values, list) else [values]
    is_finite = all(math.isfinite(each) for each in numbers if isinstance(each, float))
    return None if is_finite else name.removeprefix(".")


def _as_arrays(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain JSON values with arrays instead of lists, and floats instead of numbers."""
    read = {
        name: np.array(each, dtype=bool if name.startswith("is_") else np.float64)
        for name, each in values.items()
    }
    return {name: each if each.ndim else float(each) for name, each in read.items()}
