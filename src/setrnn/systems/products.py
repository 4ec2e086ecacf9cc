"""Independent labels: p(set) is a product over all labels, so that all probabilities are exact.

A product gives the empty set far too much: on documents that were not trained on, most labels of a
small corpus are below 1/2, though nearly every document has one. The odds of the empty set are
therefore multiplied by one factor, so that its mean probability is its share of the training
documents. The probabilities of the other sets keep their proportions.
"""

# n documents, K sets per document, L labels, M labels that matter to a document, Z sizes, G given
# sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # its submodules are imported where they are first used

from setrnn.data.ragged import even_rows
from setrnn.systems.candidates import (
    Floats,
    Floats32,
    Ids,
    LabelSizeProbs,
    SetCandidates,
    join_sets,
    list_columns,
    log_sigmoid,
    pack_labels,
    rank_sets,
    sum_over_sets,
)
from setrnn.systems.independent import bound_size, list_likely_labels, size_probs, without_label
from setrnn.systems.known import Known, make_completions

if TYPE_CHECKING:
    from setrnn.data.prepared import Prepared
    from setrnn.systems.system import System

EMPTY_SHIFT = "empty_shift"  # the name of its array
NEVER = -np.inf  # the shift of a model whose sets all have a label
MOST_LOG_ODDS = 60.0
LEAST_VALID, MOST_DOCUMENTS = 20, 1_000  # documents that the shift is fitted on


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


def fit_empty_set(system: System, prepared: Prepared, empty_sets: str) -> System:
    """Return a trained system with the empty set as frequent as in the train part.

    Only complete documents are counted. If there are none, the product stays as it is.

    Its probability is taken from documents of the valid part, if there are some: on documents that
    were trained on, a model knows too well which labels there are.

    Args:
        system: the system, before any shift.
        prepared: its data.
        empty_sets: the setting: "on" keeps the product as it is, "off" leaves the empty set out.
    """
    if not system.shifts_empty_set or empty_sets == "on":
        return system
    train = prepared.split("train")
    sizes = train.labels.lengths[train.is_complete]
    if empty_sets != "off" and not len(sizes):
        return system  # nobody knows how frequent the empty set is
    share = float((sizes == 0).mean()) if len(sizes) else 0.0
    if empty_sets == "off" or share == 0:
        return system.with_empty_shift(NEVER)
    has_valid = prepared.description["n_documents"].get("valid", 0) >= LEAST_VALID
    tokens = prepared.split("valid" if has_valid else "train").tokens
    some = tokens.take(even_rows(len(tokens), MOST_DOCUMENTS))
    nothing = np.full((len(some), 1, 1), -1, dtype=np.int32)
    log_empty = system.set_log_probs(some, nothing)[:, 0]
    return system.with_empty_shift(fit_empty_shift(log_empty, share))


def fit_empty_shift(log_empty: Floats, share: float) -> float:
    """Return what to add to the log-odds of the empty set, so that their mean gives its share.

    Args:
        log_empty: log p(empty set) of some documents, (n,), best those not trained on.
        share: the share of the training documents that have no label.

    Example:
        >>> round(fit_empty_shift(np.log([0.5, 0.5]), 0.9), 3)
        2.197
        >>> fit_empty_shift(np.log([0.5, 0.9]), 0.0)
        -inf
    """
    if share <= 0:
        return NEVER
    log_odds = log_empty - _log_not_empty(log_empty)
    log_odds = log_odds.clip(-MOST_LOG_ODDS, MOST_LOG_ODDS)

    def exceed(shift: float) -> float:
        return float(scipy.special.expit(log_odds + shift).mean()) - share

    return float(scipy.optimize.brentq(exceed, -2 * MOST_LOG_ODDS, 2 * MOST_LOG_ODDS))


def pack_shift(shift: float) -> Floats:
    """Return the array of a shift to save: of size 0 for NEVER, because arrays are finite."""
    return np.array([] if shift == NEVER else [shift])


def unpack_shift(array: Floats) -> float:
    """Return the shift of a saved array."""
    return float(array[0]) if array.size else NEVER


def log_total(log_empty: Floats, shift: float) -> Floats:
    """Return the log of the sum over all sets once p(empty set) is multiplied by exp(shift)."""
    if shift == 0:
        return np.zeros_like(log_empty)
    return np.asarray(np.logaddexp(_log_not_empty(log_empty), log_empty + shift))


def log_empty_of(logits: Floats32) -> Floats:
    """Return log p(empty set), (n,), from the log-odds of independent labels, (n, L)."""
    return np.asarray(log_sigmoid(-logits.astype(np.float64)).sum(axis=1))


def shift_log_probs(log_probs: Floats, label_sets: Ids, log_empty: Floats, shift: float) -> Floats:
    """Return log p (n, K) of sets (n, K, S) with another probability of the empty set."""
    if shift == 0:
        return log_probs
    is_empty = (label_sets < 0).all(axis=2)
    return np.asarray(
        np.where(is_empty, log_probs + shift, log_probs) - log_total(log_empty, shift)[:, None]
    )


def shift_candidates(
    label_sets: Ids, log_probs: Floats, log_empty: Floats, shift: float, known: Known | None
) -> tuple[Ids, Floats]:
    """Return the sets and their log p, in the new order, with the empty set where it fits.

    It is added to the candidates (n, K, S), so that it is not missed if it becomes more probable:
    there are K + 1 of them.
    """
    n = len(log_probs)
    others = np.where((label_sets < 0).all(axis=2), -np.inf, log_probs)
    empty = log_empty + shift
    if known is not None:
        empty = np.where((known.present >= 0).any(axis=1), -np.inf, empty)
    found = np.concatenate([others, empty[:, None]], axis=1) - log_total(log_empty, shift)[:, None]
    sets = join_sets([label_sets, np.full((n, 1, 1), -1, dtype=np.int32)])
    return rank_sets(sets, found)


def _log_not_empty(log_empty: Floats) -> Floats:
    return np.asarray(np.log(-np.expm1(np.minimum(log_empty, -1e-300))))
