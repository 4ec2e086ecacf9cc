"""Fit the weights of a mixture on documents with true labels: few parameters, cross-fitted.

The weights of maximum likelihood are the default, and those of rule `set`. For each other rule, its
measure decides between equal weights, those of maximum likelihood (of the sets, and of the single
labels), the best member alone, and weights that a small search finds: each way is fitted on four
fifths of the documents and measured on the rest. All is computed from outputs of the members that
are collected once.
"""

# n documents, I members, K sets, L labels, F folds, E pairs of a document and a label,
# M labels that matter to a document, Z sizes of sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, minimize

from setrnn.metrics import LOWER_IS_BETTER, evaluate_sets
from setrnn.systems.candidates import Bools, Floats, Ids, Ints, LabelSizeProbs
from setrnn.systems.limits import no_limits
from setrnn.systems.mixture import Weights
from setrnn.systems.rules import find_rule
from setrnn.systems.rules.expected_f1 import find_best
from setrnn.systems.rules.marginal_rules import EXPECTED_WEIGHT, OVER_HALF, find_best_thresholds
from setrnn.tagging.mixture_outputs import N_FOLDS, Outputs, Pairs

LEAST_LIKELIHOOD = 1e-12  # so that one impossible set does not decide: as in `evaluate`
LEAST_OF_LABELS = 1e-4  # likewise, for one label
MOST_STEPS, LEAST_DECREASE = 200, 1e-10  # of the likelihood's search
LEAST_WEIGHT = 1e-3  # smaller weights of maximum likelihood become 0
ROUNDS, STEPS, LEAST_GAIN = 3, (0.5, 0.2), 1e-4  # of the search
LINE = np.linspace(0, 1, 11)  # from the weights of maximum likelihood to the best member

EQUAL, LIKELIHOOD, SEARCHED, BEST = "equal", "likelihood", "searched", "best member"
LABEL_LIKELIHOOD = "likelihood of labels"
TOWARDS_BEST = "likelihood, towards the best member"


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
    """Return the weights of maximum likelihood for rule `set`.

    If the best member has a higher subset accuracy, they are moved towards it, as little as
    needed.
    """
    measured = _Measured(outputs, "set")
    weights = measured.towards_best(measured.every)
    is_moved = not np.array_equal(weights, measured.likelihood(measured.every))
    way = TOWARDS_BEST if is_moved else LIKELIHOOD
    return measured.fitted(weights, way, measured.held_out(measured.towards_best))


def fit_rule(outputs: Outputs, rule: str) -> FittedRule:
    """Choose how to weigh the members for a rule, on held-out documents, then do it with all."""
    measured = _Measured(outputs, rule)
    ways: dict[str, Callable[[Bools], Floats]] = {
        BEST: measured.best_member,  # the first of equals is taken: one member is the fastest
        EQUAL: lambda folds: measured.equal,
        LIKELIHOOD: measured.likelihood,
        LABEL_LIKELIHOOD: measured.label_likelihood,
        SEARCHED: measured.search,
    }
    held_out = {way: measured.held_out(fit) for way, fit in ways.items()}
    way = max(held_out, key=lambda each: round(held_out[each], 9))
    return measured.fitted(ways[way](measured.every), way, held_out[way])


class _Measured:
    """The measure of one rule for any weights, in some of the folds."""

    def __init__(self, outputs: Outputs, rule: str) -> None:
        self.outputs, self.rule = outputs, rule
        measure = find_rule(rule).measure
        assert measure is not None
        self.measure, self.sign = measure, -1 if measure in LOWER_IS_BETTER else 1
        self.equal = np.full(outputs.n_members, 1 / outputs.n_members)
        self.every = np.ones(N_FOLDS, dtype=bool)
        self.kept: dict[bytes, float] = {}
        self.by_labels: dict[bytes, Floats] = {}

    def value(self, weights: Floats, folds: Bools | None = None) -> float:
        """Return the measure, or its negative if less is better."""
        folds = self.every if folds is None else folds
        key = weights.tobytes() + folds.tobytes()
        if key not in self.kept:
            predicted = PREDICT[self.rule](self.outputs, Weights(weights), folds, folds)
            self.kept[key] = self._measure(predicted, folds)
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
            weights = Weights(fit(~is_out))
            found = PREDICT[self.rule](self.outputs, weights, ~is_out, is_out)
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

    def towards_best(self, folds: Bools) -> Floats:
        """Return the weights of maximum likelihood, moved so far that no member is better."""
        likelihood, best = self.likelihood(folds), self.best_member(folds)
        tried = ((1 - share) * likelihood + share * best for share in LINE)
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

    def fitted(self, weights: Floats, chosen: str, held_out: float) -> FittedRule:
        """Return the weights, or those of the best member if it is better alone."""
        best = self.best_member()
        if self.value(weights) < self.value(best):
            weights, chosen, held_out = best, BEST, self.held_out(self.best_member)
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


# What each rule predicts: from outputs and weights, with thresholds chosen in some folds, for the
# documents of some folds. The result is a sparse matrix of 0 and 1, like `Outputs.truth`.


def _as_matrix(outputs: Outputs, document: Ints, label: Ints | Ids) -> Any:  # noqa: ANN401
    ones = np.ones(len(document))
    return sp.csr_matrix((ones, (document, label)), shape=outputs.truth.shape)


def _as_sets(outputs: Outputs, rows: Ints, label_sets: Ids) -> Any:  # noqa: ANN401
    """Return sets (m, S), padded with -1, of some of the documents."""
    document, place = np.nonzero(label_sets >= 0)
    return _as_matrix(outputs, rows[document], label_sets[document, place])


def _predict_by_set(outputs: Outputs, weights: Weights, fit: Bools, folds: Bools) -> Any:  # noqa: ANN401
    rows = np.flatnonzero(folds[outputs.fold])
    best = weights.mix(outputs.set_log_probs[:, rows]).argmax(axis=1)
    return _as_sets(outputs, rows, outputs.sets[rows, best])


def _predict_by_f1(outputs: Outputs, weights: Weights, fit: Bools, folds: Bools) -> Any:  # noqa: ANN401
    rows, tables = np.flatnonzero(folds[outputs.fold]), outputs.tables
    probs = weights.average([each[rows] for each in tables.probs])
    empty = weights.average([each[rows] for each in tables.empty])
    mixed = LabelSizeProbs(tables.labels[rows], probs, empty)
    return _as_sets(outputs, rows, find_best(mixed, no_limits(outputs.n_labels)))


def _predict_by_threshold(
    choose: Callable[[Outputs, Weights, Bools], Any],
    outputs: Outputs,
    weights: Weights,
    fit: Bools,
    folds: Bools,
) -> Any:  # noqa: ANN401
    threshold = choose(outputs, weights, fit)
    chosen = outputs.pairs.kept(folds[outputs.fold[outputs.pairs.document]])
    margins = (
        _mix_pairs(chosen, weights) - np.broadcast_to(threshold, outputs.n_labels)[chosen.label]
    )
    is_in = margins >= 0
    return _as_matrix(outputs, chosen.document[is_in], chosen.label[is_in])


def _mix_pairs(pairs: Pairs, weights: Weights) -> Any:  # noqa: ANN401
    """Return the marginals of the mixture, (E,), as precise as `MixtureCandidates.marginals`."""
    return np.minimum(weights.average(pairs.probs), 1.0).astype(np.float32)


def _find_common(outputs: Outputs, weights: Weights, fit: Bools) -> float:
    pairs = outputs.pairs.kept(fit[outputs.fold[outputs.pairs.document]])
    probs = _mix_pairs(pairs, weights)
    if not pairs.is_true.any() or not (probs > 0).any():
        return 0.5
    return float(find_best_thresholds(probs[None], pairs.is_true[None], 0.0)[0])


def _find_own(outputs: Outputs, weights: Weights, fit: Bools) -> Floats:
    """Return the thresholds that `choose_thresholds` would, from the pairs alone: (L,)."""
    pairs = outputs.pairs.kept(fit[outputs.fold[outputs.pairs.document]])
    probs = _mix_pairs(pairs, weights)
    order = np.lexsort((-probs, pairs.label))
    label, values, hits = pairs.label[order], probs[order].astype(np.float64), pairs.is_true[order]
    L = outputs.n_labels
    rest = weights.average([each[fit].sum(axis=0) for each in pairs.rest])
    n_true = np.bincount(label, hits, L)
    n_all = n_true + EXPECTED_WEIGHT * (np.bincount(label, values, L) + rest)
    start = np.searchsorted(label, label)  # the first place of the same label
    n_passed = np.arange(len(label)) - start + 1
    n_hits = _sum_since(start, hits) + EXPECTED_WEIGHT * _sum_since(start, values)
    f1 = 2 * n_hits / ((1 + EXPECTED_WEIGHT) * n_passed + n_all[label])
    is_last = np.append(label[1:] != label[:-1], True) if len(label) else np.zeros(0, dtype=bool)
    below = np.where(is_last, 0.0, np.append(values[1:], 0.0))
    f1[values == below] = -1  # equal probabilities pass together
    best_first = np.lexsort((-f1, label))
    first = best_first[np.unique(label[best_first], return_index=True)[1]]
    common = _find_common(outputs, weights, fit)
    thresholds = np.full(L, common)
    found = first[(f1[first] >= 0) & (n_true[label[first]] > 0)]
    thresholds[label[found]] = (values[found] + below[found]) / 2
    return thresholds


def _sum_since(start: Ints, values: Any) -> Floats:  # noqa: ANN401 (an array)
    """Return the sum of the values from a start to each place."""
    before = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    return np.asarray(before[1:] - before[start])


PREDICT: Mapping[str, Callable[[Outputs, Weights, Bools, Bools], Any]] = {
    "set": _predict_by_set,
    "f1": _predict_by_f1,
    "hamming": partial(_predict_by_threshold, lambda outputs, weights, fit: OVER_HALF),
    "micro-f1": partial(_predict_by_threshold, _find_common),
    "label-f1": partial(_predict_by_threshold, _find_own),
}
