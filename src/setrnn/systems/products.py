"""Candidates of independent labels: all probabilities are exact."""

# n documents, L labels, M labels that matter to a document, Z sizes, G given sets

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.special is imported where it is first used

from setrnn.systems.candidates import (
    Floats,
    Floats32,
    Ids,
    LabelSizeProbs,
    SetCandidates,
    list_columns,
    log_sigmoid,
    pack_labels,
    sum_over_sets,
)
from setrnn.systems.empty_set import (
    NEVER,
    log_empty_of,
    log_total,
    shift_candidates,
    shift_log_probs,
)
from setrnn.systems.independent import (
    bound_size,
    list_likely_labels,
    size_probs,
    without_label,
)
from setrnn.systems.known import Known, make_completions


@dataclass(frozen=True)
class ProductCandidates(SetCandidates):
    """The best sets if p(set) is the product over all labels, with a shift of the empty set."""

    of_documents = (*SetCandidates.of_documents, "logits")
    logits: Floats32  # (n, L)
    empty_shift: float = 0.0  # added to the log-odds of the empty set

    def marginals(self, n_labels: int) -> Floats32:
        """Return the probability of each label: (n, L)."""
        if self.empty_shift == 0:
            return np.asarray(scipy.special.expit(self.logits))
        probs = scipy.special.expit(self.logits.astype(np.float64)) / self._total
        return np.asarray(np.minimum(probs, 1.0), dtype=np.float32)

    def missing_mass(self) -> Floats:
        """Return 0: the marginals are exact."""
        return np.zeros(len(self))

    def log_probs_of(self, label_sets: Ids) -> Floats:
        """Return log p of given sets, (n, G, S): (n, G)."""
        return product_log_probs(self.logits, label_sets, self.empty_shift)

    def label_size_probs(self, n_labels: int, also: Sequence[int] = ()) -> LabelSizeProbs:
        """Return p(label in the set, size): p(label) times p(the others have size - 1 labels)."""
        probs = scipy.special.expit(self.logits.astype(np.float64))
        labels = list_likely_labels(probs, also)
        of_sizes = size_probs(probs, bound_size(probs.sum(axis=1), n_labels))
        chosen = np.take_along_axis(probs, labels, axis=1)  # (n, M)
        others = without_label(of_sizes, chosen) / self._total[:, :, None]
        empty = of_sizes[:, 0] * np.exp(self.empty_shift) / self._total[:, 0]
        return LabelSizeProbs(labels, chosen[:, :, None] * others, empty)

    @property
    def _total(self) -> Floats:
        """The sum over all sets before it is made 1 again: (n, 1)."""
        return np.exp(log_total(log_empty_of(self.logits), self.empty_shift))[:, None]


def most_probable_products(
    logits: Floats32, n_sets: int, known: Known | None = None, empty_shift: float = 0.0
) -> SetCandidates:
    """Return the K best sets of independent labels, exactly.

    The log-odds of the empty set are shifted: -inf leaves it out.
    """
    if empty_shift == 0:
        found = _find_products(logits, n_sets, known)
    else:
        n_all = 2 ** min(logits.shape[1], 30) - int(empty_shift == NEVER)
        found = _find_products(logits, n_sets + 1, known)  # one of them may be the empty set
        sets, log_probs = shift_candidates(
            found.labels, found.log_probs, log_empty_of(logits), empty_shift, known
        )
        n_sets = max(min(n_sets, n_all), 1)
        found = SetCandidates(sets[:, :n_sets], log_probs[:, :n_sets])
    if known is not None:
        return make_completions(found, known)
    return ProductCandidates(pack_labels(found.labels), found.log_probs, logits, empty_shift)


def _find_products(logits: Floats32, n_sets: int, known: Known | None) -> SetCandidates:
    """Return the K best sets of independent labels.

    The best set has the labels of positive log-odds; flipping a label costs its |log-odds|.
    The K best combinations of flipped labels use only the K - 1 cheapest ones. Flipping a known
    label costs infinity.
    """
    n, n_labels = logits.shape
    n_sets = min(n_sets, 2 ** min(n_labels, 30))
    cost = np.abs(logits.astype(np.float64))
    is_in_best = logits > 0
    log_odds = cost  # of each label's place in the best set
    if known is not None:
        is_present, is_absent = known.is_present(n_labels), known.is_absent(n_labels)
        is_in_best = (is_in_best | is_present) & ~is_absent
        log_odds = np.where(is_in_best, logits, -logits).astype(np.float64)
        cost[is_present | is_absent] = np.inf
    n_flipped = min(n_labels, n_sets - 1)
    cheapest = np.argpartition(cost, max(n_flipped - 1, 0), axis=1)[:, :n_flipped]
    total = np.zeros((n, 1))  # cost of each combination, (n, K)
    flipped = np.zeros((n, 1, n_flipped), dtype=bool)
    for step in range(n_flipped):
        with_it = flipped.copy()
        with_it[:, :, step] = True
        price = np.take_along_axis(cost, cheapest[:, step : step + 1], axis=1)
        total = np.concatenate([total, total + price], axis=1)
        flipped = np.concatenate([flipped, with_it], axis=1)
        order = np.argsort(total, axis=1, kind="stable")[:, :n_sets]
        total = np.take_along_axis(total, order, axis=1)
        flipped = np.take_along_axis(flipped, order[:, :, None], axis=1)

    best = log_sigmoid(log_odds).sum(1)
    # Labels of a candidate: those of the best set that are never flipped, and the flexible ones.
    is_fixed = is_in_best.copy()
    np.put_along_axis(is_fixed, cheapest, False, axis=1)
    fixed = list_columns(is_fixed)[:, None].repeat(total.shape[1], axis=1)  # (n, K, F)
    is_in = np.take_along_axis(is_in_best, cheapest, axis=1)[:, None] ^ flipped
    flexible = np.where(is_in, cheapest[:, None], -1)  # (n, K, K - 1)
    labels = np.concatenate([fixed, flexible.astype(np.int32)], axis=2)
    return SetCandidates(labels, best[:, None] - total)


def product_log_probs(logits: Floats32, label_sets: Ids, empty_shift: float = 0.0) -> Floats:
    """Return log p (n, G) of given sets (n, G, S), padded with -1."""
    log_empty = log_empty_of(logits)
    log_probs = log_empty[:, None] + sum_over_sets(logits.astype(np.float64), label_sets)
    return shift_log_probs(log_probs, label_sets, log_empty, empty_shift)
