"""Measure a system on the valid part, to choose the best epoch or settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged, even_rows
from setrnn.metrics import LOWER_IS_BETTER, MEASURES, evaluate_sets, indicator_matrix
from setrnn.systems.candidates import Bools, Ids
from setrnn.systems.limits import no_limits
from setrnn.systems.neural import MAX_DOCUMENTS
from setrnn.systems.predicting import BatchSearch, documents_at_once
from setrnn.systems.rules import count_candidates, find_rule
from setrnn.systems.rules.marginal_rules import Thresholds, choose_thresholds
from setrnn.systems.system import System
from setrnn.systems.true_marginals import TrueMarginals
from setrnn.training.ranks import ALONE, Ranks

MOST_CONSTANTS = 30  # numbers of most frequent labels that are tried
MOST_REPEATED = 1_000  # of them: more labels for every document are never the best


def has_valid(prepared: Prepared) -> bool:
    """Return whether there are documents to measure on."""
    return bool(prepared.description["n_documents"].get("valid"))


def validate(
    system: System,
    prepared: Prepared,
    rule: str,
    max_documents: int,
    between_batches: Callable[[], None] = lambda: None,
    ranks: Ranks = ALONE,
) -> dict[str, float]:
    """Measure on the valid part; on `max_documents` evenly spaced ones if there are more.

    The thresholds of a rule that needs some are chosen on the same documents. Several processes
    predict a share of the documents each; all return the same measures.
    """
    valid = prepared.split("valid")
    rows = even_rows(len(valid), max_documents)
    rows = rows[np.argsort(-valid.tokens.lengths[rows], kind="stable")]
    truth, L = list(valid.labels.take(rows)), len(prepared.labels)
    own = ranks.deal(rows)
    by, limits = find_rule(rule), no_limits(L)
    searches: list[BatchSearch] = []
    at_once = documents_at_once(L, MAX_DOCUMENTS)
    for start in range(0, -(-len(rows) // ranks.n), at_once):  # as often in each process
        some = own[start : start + at_once]
        if len(some):
            tokens = valid.tokens.take(some)
            searches.append(BatchSearch(system, tokens, {by.source: count_candidates(by)}))
        between_batches()
    thresholds = None
    if by.needs_thresholds:
        thresholds = _find_thresholds(searches, truth, L, ranks, valid.mark_unknown(L, rows))
    chosen = [each.choose(rule, limits, thresholds) for each in searches]
    labels = [row[row >= 0] for each in chosen for row in each.labels]
    predicted = ranks.collect(labels)
    log_probs = ranks.collect([each for some in chosen for each in some.log_probs])
    n_labels = L + len(prepared.unseen_labels)
    unknown = valid.mark_unknown(n_labels, rows)
    measured = evaluate_sets(
        indicator_matrix(truth, n_labels), indicator_matrix(predicted, n_labels), unknown
    ).as_dict()
    return {name: float(measured[name]) for name in MEASURES} | {
        "mean_probability": float(np.exp(np.array(log_probs, dtype=np.float64)).mean())
    }


def _find_thresholds(
    searches: Sequence[BatchSearch],
    truth: Sequence[Ids],
    n_labels: int,
    ranks: Ranks,
    unknown: Bools | None,
) -> Thresholds:
    """Choose thresholds on the documents that are measured."""
    own = [each.system.marginals(each.tokens, each.many_sets()) for each in searches]
    marginals = ranks.collect([row for rows in own for row in rows])
    known = Ragged.from_lists([row[row < n_labels].tolist() for row in truth])
    joined = TrueMarginals.of(np.stack(marginals), known, unknown)
    return choose_thresholds(joined.probs, joined.is_label, joined)


def best_constant(prepared: Prepared, measure: str, split: str = "valid") -> float:
    """Measure what needs no model on a part: always the same most frequent labels.

    Their number is the best one, from none to all, or to the 1,000 most frequent.
    """
    part = prepared.split(split)
    truth = part.labels
    L, n_labels = len(prepared.labels), len(prepared.labels) + len(prepared.unseen_labels)
    matrix = indicator_matrix(list(truth), n_labels)
    unknown = part.mark_unknown(n_labels)
    most = min(L, MOST_REPEATED)
    sizes = np.unique(np.geomspace(1, most + 1, min(MOST_CONSTANTS, most + 1)).astype(np.int64) - 1)
    scores = []
    for size in sizes:
        most_frequent = [np.arange(size, dtype=np.int32)] * len(truth)  # they have the lowest ids
        found = evaluate_sets(matrix, indicator_matrix(most_frequent, n_labels), unknown)
        scores.append(float(found.as_dict()[measure]))
    return min(scores) if measure in LOWER_IS_BETTER else max(scores)
