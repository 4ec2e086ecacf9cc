"""The probability of the empty set, for systems whose labels are independent.

A product over labels gives the empty set far too much: on documents that were not trained on, most
labels of a small corpus are below 1/2, though nearly every document has one. The odds of the empty
set are therefore multiplied by one factor, so that its mean probability is its share of the
training documents. The probabilities of the other sets keep their proportions.
"""

# n documents, K sets per document, S labels of the largest set

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy  # its submodules are imported where they are first used

from setrnn.data.ragged import even_rows
from setrnn.systems.candidates import Floats, Floats32, Ids, join_sets, log_sigmoid, rank_sets

if TYPE_CHECKING:
    from setrnn.data.prepared import Prepared
    from setrnn.systems.known import Known
    from setrnn.systems.system import System

EMPTY_SHIFT = "empty_shift"  # the name of its array
NEVER = -np.inf  # the shift of a model whose sets all have a label
MOST_LOG_ODDS = 60.0
LEAST_VALID, MOST_DOCUMENTS = 20, 1_000  # documents that the shift is fitted on


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
