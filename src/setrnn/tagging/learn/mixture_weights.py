"""Fit the weights of a mixture on documents with true labels, for each prediction rule.

Each rule's measure decides between a few ways to weigh the members: each way is fitted on four
fifths of the documents and measured on the rest, five times. If a member is better alone, on all
documents together, the weights are moved towards it, as little as needed. The members predict once;
the rules choose from their mixed candidates.
"""

# n documents, I members, L labels, E pairs of a document and a label

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint, minimize
from scipy.sparse import vstack

from setrnn.data.ragged import Ragged, even_rows
from setrnn.metrics import LOWER_IS_BETTER, evaluate_sets, indicator_matrices, indicator_matrix
from setrnn.progress import OnProgress, count_up, ignore_progress
from setrnn.systems.candidates import Bools, Floats, Ids, Ints, pack_labels
from setrnn.systems.limits import no_limits
from setrnn.systems.mixture import MixtureCandidates, MixtureSystem, Weights
from setrnn.systems.rules import MANY_SETS, RULES, Rule
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import choose_thresholds
from setrnn.tagging.documents import Batch
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust.sets import draw_folds

LEAST_TO_FIT = 20  # documents
# All members' outputs for them are in memory, and thresholds are chosen on them many times.
MOST_TO_FIT, MOST_PAIRS = 5_000, 2**23  # documents; pairs of a document and a label
LEAST_LIKELIHOOD = 1e-12  # so that one impossible set does not decide: as in `evaluate`
LEAST_OF_LABELS = 1e-4  # likewise, for one label
LEAST_MARGINAL = 0.001  # absent labels that no member gives this much are left out
MOST_STEPS, LEAST_DECREASE = 200, 1e-10  # of the likelihood's search
LEAST_WEIGHT = 1e-3  # smaller weights of maximum likelihood become 0

EQUAL, LIKELIHOOD, BEST = "equal", "likelihood", "best member"
LABEL_LIKELIHOOD = "likelihood of labels"
TOWARDS_BEST = "towards the best member"
LINE = np.linspace(0, 1, 11)  # from the weights of a way to the best member


def can_fit(n_labels: Ints) -> bool:
    """Return whether weights can be fitted on complete documents with so many labels each (n,).

    Example:
        >>> can_fit(np.full(20, 2)), can_fit(np.full(19, 2)), can_fit(np.zeros(100, dtype=int))
        (True, False, False)
    """
    return len(n_labels) >= LEAST_TO_FIT and bool(n_labels.any())


@dataclass(frozen=True)
class Outputs:
    """What the members say about documents, and the truth."""

    candidates: Sequence[MixtureCandidates]  # of each batch of documents
    true_log_probs: Floats  # (I, n) log p(true set); NaN if a label is not one of the members'
    is_label: Bools  # (n, L)
    truth: Any  # (n, L + labels that the members do not have) of 0 and 1, sparse

    def list_label_log_probs(self) -> tuple[Floats, Any]:
        """Return the log-probability of what is true of pairs, (I, E), and their documents (E,)."""
        L = self.is_label.shape[1]
        parts, start = [], 0
        for each in self.candidates:
            members = range(len(self.true_log_probs))
            probs = np.stack([each.pool.marginals(member, L) for member in members])
            is_true = self.is_label[start : start + len(each)]
            document, label = np.nonzero(is_true | (probs.max(axis=0) >= LEAST_MARGINAL))
            found = label_log_probs(probs[:, document, label], is_true[document, label])
            parts.append((found, document + start))
            start += len(each)
        log_probs, documents = zip(*parts, strict=True)
        return np.concatenate(log_probs, axis=1), np.concatenate(documents)


@dataclass(frozen=True)
class FittedRule:
    """The weights of one rule, and what its measure is with them on the same documents."""

    weights: Floats  # (I,)
    chosen: str  # how: a way, perhaps moved towards the best member
    measure: str
    members: list[float]  # the score of each alone
    mixture: float
    # Of each fifth of the documents, by weights and thresholds fitted on the others.
    held_out: float
    members_held_out: list[float]


def collect(
    mixture: Tagger, batches: Sequence[Batch], on_progress: OnProgress = ignore_progress
) -> Outputs:
    """Run all members on documents with labels, once, and keep what the weights are fitted to."""
    system, labels = mixture.system, mixture.labels
    assert isinstance(system, MixtureSystem)
    tokens = Ragged.concatenate(batch.tokens for batch in batches)
    label_sets = [names for batch in batches for names in batch.labels]
    most = min(MOST_TO_FIT, max(MOST_PAIRS // len(labels), LEAST_TO_FIT))
    rows = even_rows(len(tokens), most)
    tokens, label_sets = tokens.take(rows), [label_sets[row] for row in rows]
    true_sets = labels.encode(label_sets)
    is_known = true_sets.lengths == np.array([len(set(each)) for each in label_sets])
    padded = pack_labels(true_sets.padded(min_width=1))[:, None]
    is_label = np.zeros((len(rows), len(labels)), dtype=bool)
    is_label[true_sets.row_numbers, true_sets.values] = True
    candidates, log_probs = [], []
    count = count_up("mixing", on_progress, len(rows))
    for start in range(0, len(rows), mixture.batch_size):
        part = slice(start, start + mixture.batch_size)
        some = tokens.take(np.arange(len(rows))[part])
        found = system.candidates(some, MANY_SETS)
        assert isinstance(found, MixtureCandidates)
        candidates.append(found)
        log_probs.append(system.member_log_probs(some, padded[part])[:, :, 0])
        count(len(some))
    true_log_probs = np.where(is_known, np.concatenate(log_probs, axis=1), np.nan)
    truth, _ = indicator_matrices(label_sets, [()] * len(rows), labels.names)
    return Outputs(candidates, true_log_probs, is_label, truth)


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


def label_log_probs(probs: Any, is_true: Bools) -> Floats:  # noqa: ANN401 (an array)
    """Return the log-probability of what is true of pairs, (I, E), from their marginals."""
    likely = np.where(is_true, probs, 1 - np.asarray(probs, dtype=np.float64))
    log_probs: Floats = np.log(likely.clip(LEAST_OF_LABELS))
    return log_probs


def mean_log_likelihood(log_probs: Floats, weights: Floats) -> float | None:
    """Return the mean of log p(true set), over documents all of whose labels are known."""
    known = log_probs[:, ~np.isnan(log_probs).any(axis=0)]
    if not known.shape[1]:
        return None
    mixed = Weights(weights).mix(known)
    return float(np.maximum(mixed, np.log(LEAST_LIKELIHOOD)).mean())


def fit_rules(outputs: Outputs) -> tuple[Floats, dict[str, FittedRule]]:
    """Return the weights (I,) of maximum likelihood, and those of each rule that has a measure.

    Those of rule `set` follow from the likelihood.
    """
    I, n = outputs.true_log_probs.shape  # noqa: E741 (the number of members)
    of_labels, documents = outputs.list_label_log_probs()
    parts = [*(~is_out for is_out in draw_folds(n)), np.ones(n, dtype=bool)]
    likely = [fit_likelihood(outputs.true_log_probs[:, rows]) for rows in parts]
    ways = {
        EQUAL: [np.full(I, 1 / I)] * len(parts),
        LIKELIHOOD: likely,
        LABEL_LIKELIHOOD: [fit_likelihood(of_labels[:, rows[documents]]) for rows in parts],
    }
    fitted = {}
    for name, rule in RULES.items():
        if rule.measure is not None and rule.source == "sets":
            scores = _Scores(outputs, rule, rule.measure)
            best = [scores.best_member(rows) for rows in parts]
            # The first of equals is taken: one member is the fastest.
            tried = {LIKELIHOOD: likely} if name == "set" else {BEST: best, **ways}
            fitted[name] = _fit_rule(scores, parts, tried, best)
    return likely[-1], fitted


def _fit_rule(
    scores: _Scores,
    parts: Sequence[Bools],
    ways: Mapping[str, Sequence[Floats]],
    best: Sequence[Floats],
) -> FittedRule:
    """Choose how to weigh the members on held-out documents.

    Args:
        scores: the measure of the rule.
        parts: the documents that weights are fitted on: all but each fold, then all.
        ways: the weights of each way, fitted on each part.
        best: those of the best member alone.
    """
    held_out = {way: scores.held_out(weights, parts) for way, weights in ways.items()}
    way = max(ways, key=lambda each: round(held_out[each], 9))
    moved = list(map(scores.move, ways[way], best, parts))
    weights, every = moved[-1], parts[-1]
    chosen = way if np.array_equal(weights, ways[way][-1]) else f"{way}, {TOWARDS_BEST}"
    return FittedRule(
        weights,
        BEST if np.array_equal(weights, best[-1]) else chosen,
        scores.measure,
        [scores.sign * scores.value(each, every) for each in scores.members],
        scores.sign * scores.value(weights, every),
        scores.sign * scores.held_out(moved, parts),
        [scores.sign * scores.held_out([each] * len(parts), parts) for each in scores.members],
    )


class _Scores:
    """The measure of a rule's predictions by any weights: more is better.

    Rows (n,) mark the documents to choose thresholds and to measure on.
    """

    def __init__(self, outputs: Outputs, rule: Rule, measure: str) -> None:
        self.outputs, self.rule, self.measure = outputs, rule, measure
        self.sign = -1 if measure in LOWER_IS_BETTER else 1
        self.members = np.eye(len(outputs.true_log_probs))  # the weights of each alone
        self.predicted: dict[bytes, Any] = {}

    def value(self, weights: Floats, rows: Bools) -> float:
        """Return the measure on some documents."""
        return self._compare(self.outputs.truth[rows], self._predict(weights, rows)[rows])

    def held_out(self, weights: Sequence[Floats], parts: Sequence[Bools]) -> float:
        """Return the measure of predictions for each fold by weights fitted on the others."""
        pairs = list(zip(weights, parts, strict=True))[:-1]
        found = [self._predict(each, rows)[~rows] for each, rows in pairs]
        truth = [self.outputs.truth[~rows] for _, rows in pairs]
        return self._compare(vstack(truth), vstack(found))

    def best_member(self, rows: Bools) -> Floats:
        """Return the weights of the best member alone."""
        return max(self.members, key=lambda each: self.value(each, rows))

    def move(self, weights: Floats, best: Floats, rows: Bools) -> Floats:
        """Move weights towards the best member, as little as needed to be as good as it is."""
        tried = ((1 - share) * weights + share * best for share in LINE)
        least = self.value(best, rows)
        return next((each for each in tried if self.value(each, rows) >= least), best)

    def _compare(self, truth: Any, predicted: Any) -> float:  # noqa: ANN401 (sparse matrices)
        return self.sign * float(getattr(evaluate_sets(truth, predicted), self.measure))

    def _predict(self, weights: Floats, rows: Bools) -> Any:  # noqa: ANN401
        """Return the predictions for all documents, with thresholds chosen on some of them."""
        key = weights.tobytes() + (rows.tobytes() if self.rule.needs_thresholds else b"")
        if key in self.predicted:
            return self.predicted[key]
        is_label, by = self.outputs.is_label, Weights(weights)
        limits, thresholds = no_limits(is_label.shape[1]), None
        parts = [MixtureCandidates.of(each.pool, by, None) for each in self.outputs.candidates]
        if self.rule.needs_thresholds:
            marginals = np.concatenate([each.marginals(limits.n_labels) for each in parts])
            thresholds = choose_thresholds(marginals[rows], is_label[rows])
        chosen: list[Any] = []
        for each in parts:
            # Without limits, no rule asks for a set that is not a candidate.
            choice = Choice(each, limits, _know_no_set, thresholds)
            chosen += [labels[labels >= 0] for labels in self.rule.choose(choice)]
        self.predicted[key] = indicator_matrix(chosen, self.outputs.truth.shape[1])
        return self.predicted[key]


def _know_no_set(rows: Ints, label_sets: Ids) -> Floats:
    return np.full(label_sets.shape[:2], -np.inf)
