"""Fit the weights of a mixture on documents with true labels: few parameters, cross-fitted.

The weights of maximum likelihood are the default, and those of rule `set`. For each other rule, its
measure decides between equal weights, those of maximum likelihood (of the sets, and of the single
labels), the best member alone, and weights that a small search finds: each way is fitted on four
fifths of the documents and measured on the rest. If a member is better alone, on all documents
together, the weights are moved towards it, as little as needed. All is computed from outputs of the
members that are collected once.
"""

# n documents, I members, K sets, L labels, F folds, E pairs of a document and a label,
# M labels that matter to a document, Z sizes of sets, S labels of the largest set

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize

from setrnn.metrics import LOWER_IS_BETTER, evaluate_sets
from setrnn.systems.candidates import Bools, Floats, Floats32, Ids, Ints, LabelSizeProbs
from setrnn.systems.limits import no_limits
from setrnn.systems.mixture_candidates import Weights
from setrnn.systems.rules import find_rule
from setrnn.systems.rules.expected_f1 import find_best
from setrnn.systems.rules.marginal_rules import EXPECTED_WEIGHT, OVER_HALF, find_best_threshold
from setrnn.tagging.learn.mixture_outputs import N_FOLDS, Outputs, Pairs

LEAST_LIKELIHOOD = 1e-12  # so that one impossible set does not decide: as in `evaluate`
LEAST_OF_LABELS = 1e-4  # likewise, for one label
MOST_STEPS, LEAST_DECREASE = 200, 1e-10  # of the likelihood's search
LEAST_WEIGHT = 1e-3  # smaller weights of maximum likelihood become 0
ROUNDS, STEPS, LEAST_GAIN = 3, (0.5, 0.2), 1e-4  # of the search
LINE = np.linspace(0, 1, 11)  # from the weights of the chosen way to the best member

EQUAL, LIKELIHOOD, SEARCHED, BEST = "equal", "likelihood", "searched", "best member"
LABEL_LIKELIHOOD = "likelihood of labels"
TOWARDS_BEST = "towards the best member"


@dataclass(frozen=True)
class FittedRule:
    """The weights of one rule, and what its measure is with them on the same documents."""

    rule: str
    weights: Floats  # (I,)
    chosen: str  # how: see the module
    measure: str
    score: float
    # The same on documents that did not choose: each fifth by weights fitted on the others.
    held_out_score: float
    member_scores: tuple[float, ...]


def fit_likelihood(log_probs: Floats) -> Floats:
    """Return the weights (I,) of maximum likelihood, from log p(true set) by each member, (I, n).

    The problem is convex. The likelihood is at least that of the best member.

    Example: the second member is right about two documents of three.

        >>> fit_likelihood(np.log([[0.9, 0.1, 0.1], [0.1, 0.9, 0.9]])).round(2).tolist()
        [0.29, 0.71]
    """
    I = len(log_probs)  # noqa: E741 (the number of members)
    known = log_probs[:, ~np.isnan(log_probs).any(axis=0)]
    if not known.shape[1]:
        return np.full(I, 1 / I)
    probs = np.maximum(np.exp(known), LEAST_LIKELIHOOD)  # (I, n)

    def loss(weights: Floats) -> tuple[float, Floats]:
        total = weights @ probs
        return -float(np.log(total).mean()), -(probs @ (1 / total)) / len(total)

    found = minimize(
        loss,
        np.full(I, 1 / I),
        jac=True,
        method="SLSQP",
        bounds=[(LEAST_LIKELIHOOD, 1)] * I,
        constraints=LinearConstraint(np.ones(I), 1, 1),
        options={"ftol": LEAST_DECREASE, "maxiter": MOST_STEPS},
    )
    weights = found.x.clip(0) / found.x.clip(0).sum()
    large = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    tried = [large / large.sum(), weights, *np.eye(I)]
    return max(tried, key=lambda each: round(float(np.log(each @ probs).mean()), 6))


def label_log_probs(pairs: Pairs) -> Floats:
    """Return the log-probability of what is true of each pair, by each member: (I, E)."""
    probs = np.stack(pairs.probs).astype(np.float64)
    likely = np.where(pairs.is_true, probs, 1 - probs)
    log_probs: Floats = np.log(likely.clip(LEAST_OF_LABELS))
    return log_probs


def mean_log_likelihood(log_probs: Floats, weights: Floats) -> float | None:
    """Return the mean of log p(true set), over documents all of whose labels are known."""
    known = log_probs[:, ~np.isnan(log_probs).any(axis=0)]
    if not known.shape[1]:
        return None
    mixed = Weights(weights).mix(known)
    return float(np.maximum(mixed, np.log(LEAST_LIKELIHOOD)).mean())


def fit_rules(outputs: Outputs, rules: Sequence[str]) -> Iterator[FittedRule]:
    """Fit the weights of each rule that has a measure."""
    for rule in rules:
        yield fit_set_rule(outputs) if rule == "set" else fit_rule(outputs, rule)


def fit_set_rule(outputs: Outputs) -> FittedRule:
    """Weigh the members by maximum likelihood for rule `set`."""
    return _Measured(outputs, "set").fitted(LIKELIHOOD)


def fit_rule(outputs: Outputs, rule: str) -> FittedRule:
    """Choose how to weigh the members for a rule, on held-out documents, then do it with all."""
    measured = _Measured(outputs, rule)
    held_out = {way: measured.held_out(fit) for way, fit in measured.ways.items()}
    return measured.fitted(max(held_out, key=lambda each: round(held_out[each], 9)))


class _Measured:
    """The measure of one rule for any weights, in some of the folds."""

    def __init__(self, outputs: Outputs, rule: str) -> None:
        self.outputs, self.rule = outputs, rule
        measure = find_rule(rule).measure
        assert measure is not None
        self.measure, self.sign = measure, -1 if measure in LOWER_IS_BETTER else 1
        self.equal = np.full(outputs.n_members, 1 / outputs.n_members)
        self.every = np.ones(N_FOLDS, dtype=bool)
        self.predict = PREDICT[rule](outputs)
        self.kept: dict[bytes, float] = {}
        self.by_labels: dict[bytes, Floats] = {}
        self.ways: dict[str, Callable[[Bools], Floats]] = {
            BEST: self.best_member,  # the first of equals is taken: one member is the fastest
            EQUAL: lambda folds: self.equal,
            LIKELIHOOD: self.likelihood,
            LABEL_LIKELIHOOD: self.label_likelihood,
            SEARCHED: self.search,
        }

    def value(self, weights: Floats, folds: Bools | None = None) -> float:
        """Return the measure, or its negative if less is better."""
        folds = self.every if folds is None else folds
        key = weights.tobytes() + folds.tobytes()
        if key not in self.kept:
            self.kept[key] = self._measure(self.predict(weights, folds, folds), folds)
        return self.kept[key]

    def _measure(self, predicted: Any, folds: Bools) -> float:  # noqa: ANN401 (a sparse matrix)
        rows = folds[self.outputs.fold]
        scores = evaluate_sets(self.outputs.truth[rows], predicted[rows])
        return self.sign * float(getattr(scores, self.measure))

    def held_out(self, fit: Callable[[Bools], Floats]) -> float:
        """Return the measure of predictions for each fold by weights fitted on the others."""
        total = None
        for fold in range(N_FOLDS):
            is_out = np.arange(N_FOLDS) == fold
            found = self.predict(fit(~is_out), ~is_out, is_out)
            total = found if total is None else total + found
        return self._measure(total, self.every)

    def likelihood(self, folds: Bools) -> Floats:
        """Return the weights of maximum likelihood."""
        return fit_likelihood(self.outputs.true_log_probs[:, folds[self.outputs.fold]])

    def label_likelihood(self, folds: Bools) -> Floats:
        """Return the weights of maximum likelihood of the labels, each by itself."""
        key = folds.tobytes()
        if key not in self.by_labels:
            pairs = self.outputs.pairs.kept(folds[self.outputs.fold[self.outputs.pairs.document]])
            self.by_labels[key] = fit_likelihood(label_log_probs(pairs))
        return self.by_labels[key]

    def towards_best(self, weights: Floats, folds: Bools) -> Floats:
        """Move weights towards the best member, as little as needed: no member is better then."""
        best = self.best_member(folds)
        tried = ((1 - share) * weights + share * best for share in LINE)
        least = self.value(best, folds)
        return next((each for each in tried if self.value(each, folds) >= least), best)

    def best_member(self, folds: Bools | None = None) -> Floats:
        """Return weights that use only the member with the best measure."""
        return max(np.eye(len(self.equal)), key=partial(self.value, folds=folds))

    def search(self, folds: Bools) -> Floats:
        """Search from the best of a few weights, in steps towards and away from each member."""
        value = partial(self.value, folds=folds)
        likely = [self.likelihood(folds), self.label_likelihood(folds)]
        starts = [self.equal, *likely, *np.eye(len(self.equal))]
        best: Floats = max(starts, key=value)
        for _ in range(ROUNDS):
            found = max(_neighbours(best), key=value, default=best)
            if value(found) < value(best) + LEAST_GAIN:
                break
            best = found
        return best

    def fitted(self, way: str) -> FittedRule:
        """Weigh the members in one of the ways, but not worse than the best member alone."""

        def fit(folds: Bools) -> Floats:
            return self.towards_best(self.ways[way](folds), folds)

        weights = fit(self.every)
        is_moved = not np.array_equal(weights, self.ways[way](self.every))
        is_best = np.array_equal(weights, self.best_member())
        chosen = BEST if is_best else f"{way}, {TOWARDS_BEST}" if is_moved else way
        held_out = self.held_out(fit)
        members = [self.sign * self.value(each) for each in np.eye(len(weights))]
        return FittedRule(
            self.rule,
            weights,
            chosen,
            self.measure,
            self.sign * self.value(weights),
            self.sign * held_out,
            tuple(members),
        )


def _neighbours(weights: Floats) -> Iterator[Floats]:
    for member, one in enumerate(np.eye(len(weights))):
        for step in STEPS:
            yield (1 - step) * weights + step * one
        without = weights * (1 - one)
        if 0 < weights[member] < 1:
            yield without / without.sum()


# What each rule predicts: for any weights, with thresholds chosen in some folds, for the documents
# of some folds. The result is a sparse matrix of 0 and 1, like `Outputs.truth`; the rows of other
# documents are empty.


class _Predict(ABC):
    """The predictions of one rule. What a vector of weights gives is kept for all folds."""

    N_KEPT = 64

    def __init__(self, outputs: Outputs) -> None:
        self.outputs = outputs
        self.mixed = lru_cache(self.N_KEPT)(lambda each: self.mix(Weights(np.frombuffer(each))))

    @abstractmethod
    def mix(self, weights: Weights) -> Any:  # noqa: ANN401
        """Return what the weights give for all documents, before any threshold."""

    @abstractmethod
    def __call__(self, weights: Floats, fit: Bools, folds: Bools) -> Any:  # noqa: ANN401
        """Return the predictions."""

    def as_matrix(self, document: Ints, label: Ints | Ids) -> Any:  # noqa: ANN401
        """Return pairs of a document and a label as a matrix."""
        ones = np.ones(len(document))
        return sp.csr_matrix((ones, (document, label)), shape=self.outputs.truth.shape)


class _PredictSets(_Predict):
    """Rules without a threshold: all documents are predicted at once."""

    N_KEPT = 2_000

    def __call__(self, weights: Floats, fit: Bools, folds: Bools) -> Any:  # noqa: ANN401
        sets = self.mixed(weights.tobytes())
        document, place = np.nonzero((sets >= 0) & folds[self.outputs.fold][:, None])
        return self.as_matrix(document, sets[document, place])


class _PredictBySet(_PredictSets):
    def mix(self, weights: Weights) -> Ids:
        best = weights.mix(self.outputs.set_log_probs).argmax(axis=1)
        return np.asarray(self.outputs.sets[np.arange(len(best)), best])


class _PredictByF1(_PredictSets):
    def mix(self, weights: Weights) -> Ids:
        tables = self.outputs.tables
        flat: Any = weights.current.astype(np.float32) @ self.flat
        probs = flat.reshape(tables.probs.shape[1:])
        mixed = LabelSizeProbs(tables.labels, probs, weights.current @ tables.empty)
        return find_best(mixed, no_limits(self.outputs.n_labels))

    @cached_property
    def flat(self) -> Floats32:
        """The tables of the members, (I, n M Z): half as precise, and faster."""
        probs = self.outputs.tables.probs
        return np.asarray(probs, dtype=np.float32).reshape(len(probs), -1)


class _PredictByThreshold(_Predict):
    """Marginals above a threshold: here, one half."""

    def mix(self, weights: Weights) -> Floats32:
        """Return the marginals of the pairs, as precise as `MixtureCandidates.marginals`."""
        mixed = np.minimum(weights.average(self.outputs.pairs.probs), 1.0)
        return np.asarray(mixed, dtype=np.float32)

    def __call__(self, weights: Floats, fit: Bools, folds: Bools) -> Any:  # noqa: ANN401
        pairs, probs = self.outputs.pairs, self.mixed(weights.tobytes())
        thresholds = np.broadcast_to(self.choose(weights, probs, fit), self.outputs.n_labels)
        is_in = (probs >= thresholds[pairs.label]) & folds[self.fold]
        return self.as_matrix(pairs.document[is_in], pairs.label[is_in])

    @cached_property
    def fold(self) -> Ints:
        """The fold of each pair."""
        return self.outputs.fold[self.outputs.pairs.document]

    def choose(self, weights: Floats, probs: Floats32, fit: Bools) -> Any:  # noqa: ANN401
        """Return the threshold, or that of each label."""
        return OVER_HALF


class _PredictByCommon(_PredictByThreshold):
    def choose(self, weights: Floats, probs: Floats32, fit: Bools) -> Any:  # noqa: ANN401
        is_fit = fit[self.fold]
        probs, is_true = probs[is_fit], self.outputs.pairs.is_true[is_fit]
        if not is_true.any() or not (probs > 0).any():
            return 0.5
        return find_best_threshold(probs, is_true)


class _PredictByOwn(_PredictByCommon):
    def choose(self, weights: Floats, probs: Floats32, fit: Bools) -> Any:  # noqa: ANN401
        """Return the thresholds that `choose_thresholds` would, from the pairs alone: (L,)."""
        thresholds = np.full(self.outputs.n_labels, super().choose(weights, probs, fit))
        places = self.by_label[fit[self.fold[self.by_label]]]
        if not len(places):
            return thresholds
        pairs, L = self.outputs.pairs, self.outputs.n_labels
        # Labels ascending, and the probabilities of each label descending.
        places = places[np.argsort(2.0 * pairs.label[places] - probs[places])]
        label, values = pairs.label[places], probs[places].astype(np.float64)
        hits = pairs.is_true[places]
        rest = Weights(weights).average([each[fit].sum(axis=0) for each in pairs.rest])
        n_true = np.bincount(label, hits, L)
        n_all = n_true + EXPECTED_WEIGHT * (np.bincount(label, values, L) + rest)
        starts = np.flatnonzero(np.append(True, label[1:] != label[:-1]))
        lengths = np.diff(np.append(starts, len(label)))
        start = np.repeat(starts, lengths)  # the first place of the same label
        n_passed = np.arange(len(label)) - start + 1
        n_hits = _sum_since(start, hits) + EXPECTED_WEIGHT * _sum_since(start, values)
        f1 = 2 * n_hits / ((1 + EXPECTED_WEIGHT) * n_passed + n_all[label])
        below = np.append(values[1:], 0.0)
        below[starts[1:] - 1] = 0.0
        f1[values == below] = -1  # equal probabilities pass together
        is_best = np.flatnonzero(f1 == np.repeat(np.maximum.reduceat(f1, starts), lengths))
        first = is_best[np.unique(label[is_best], return_index=True)[1]]
        found = first[(f1[first] >= 0) & (n_true[label[first]] > 0)]
        thresholds[label[found]] = (values[found] + below[found]) / 2
        return thresholds

    @cached_property
    def by_label(self) -> Ints:
        """The pairs in the order of their labels."""
        return np.argsort(self.outputs.pairs.label, kind="stable")


def _sum_since(start: Ints, values: Any) -> Floats:  # noqa: ANN401 (an array)
    """Return the sum of the values from a start to each place."""
    before = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return np.asarray(before[1:] - before[start])


PREDICT: Mapping[str, Callable[[Outputs], _Predict]] = {
    "set": _PredictBySet,
    "f1": _PredictByF1,
    "hamming": _PredictByThreshold,
    "micro-f1": _PredictByCommon,
    "label-f1": _PredictByOwn,
}
