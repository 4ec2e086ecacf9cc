"""Comparisons in which the answer is known: systems that get a given share of the labels wrong."""

from dataclasses import replace

import numpy as np

from made_comparison import made_comparison
from setrnn.comparison.statistics import bootstrap
from setrnn.report.findings import find

GOOD, POOR = 0.05, 0.6
DRAWS = 399


def compared(errors, n_documents=200, n_seeds=1, entropies=None):
    """Return a comparison and records; errors by system, or by system and rule.

    Systems and rules of the same error predict the same: nothing tells them apart.
    """
    comparison, records = made_comparison(tuple(errors), n_seeds, n_documents)
    changed = []
    for record in records:
        wanted = errors[record.method]
        by_rule = wanted if isinstance(wanted, dict) else dict.fromkeys(record.rules, wanted)
        predicted = {rule: flipped(comparison, by_rule.get(rule, GOOD)) for rule in record.rules}
        test = replace(record.test, predicted=predicted)
        if entropies is not None:
            spread = entropy_of(predicted["set"], entropies[record.method])
            test = replace(test, order_entropy=spread)
        changed.append(replace(record, test=test))
    return comparison, changed


def flipped(comparison, share):
    """Flip labels of the true sets, the same ones for the same share."""
    random = np.random.default_rng(7)
    is_wrong = random.random((len(comparison.truth), comparison.n_labels)) < share / 3
    return [
        sorted(set(row) ^ set(np.flatnonzero(wrong).tolist()))
        for row, wrong in zip(comparison.truth, is_wrong, strict=True)
    ]


def entropy_of(sets, mean):
    random = np.random.default_rng(3)
    return [
        float(np.clip(mean + random.normal(0, 0.05), 0, 1)) if len(row) > 1 else None
        for row in sets
    ]


def found(comparison, records):
    """Return the findings by name."""
    findings = find(comparison, records, bootstrap(comparison, records, draws=DRAWS))
    return {each.name: each for each in (*findings.papers, *findings.beyond)}, findings
