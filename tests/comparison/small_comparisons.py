"""Small comparisons whose answers are known, for tests of their statistics."""

import numpy as np

from setrnn.comparison.records import Comparison, Record, TestResults
from setrnn.comparison.statistics import Bootstrap, Entry

A, B, C = (Entry(system, "set") for system in "abc")


def comparison_of(truth, n_labels):
    n = len(truth)
    return Comparison(
        data="made-up",
        data_hash="0",
        synthetic=True,
        n_documents={"test": n},
        valid_is_cut=False,
        labels=tuple(f"label-{number}" for number in range(n_labels)),
        label_counts=(1,) * n_labels,
        ids=tuple(f"{number:04d}" for number in range(n)),
        truth=truth,
    )


def record_of(system, sets, seed=0, rule="set"):
    return Record(system, seed, "0", rule, test=TestResults({rule: sets}, {}))


def right_or_not(**systems):
    """Compare systems by documents they get right: subset accuracy is the mean.

    Of each system the documents, or runs x documents.
    """
    runs = {name: np.atleast_2d(is_right) for name, is_right in systems.items()}
    n = next(iter(runs.values())).shape[1]
    records = [
        record_of(name, [[0] if each else [1] for each in run], seed)
        for name, rows in runs.items()
        for seed, run in enumerate(rows)
    ]
    return comparison_of([[0]] * n, 2), records


def drawn_accuracy(draws=199, seed=0, **systems):
    return Bootstrap(*right_or_not(**systems), n_draws=draws, seed=seed)
