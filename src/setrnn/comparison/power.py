"""Power: how many test documents would show a difference that is not significant yet."""

from __future__ import annotations

from math import inf

from scipy.stats import norm

from setrnn.comparison.statistics import LEVEL, Bootstrap, Entry

POWER = 0.8  # the chance that a test with so many documents shows the difference


def documents_needed(
    bootstrap: Bootstrap, first: Entry, second: Entry, measure: str, n_tests: int
) -> float:
    """Estimate how many test documents would show a difference as large as the measured one.

    They show it with a chance of 80%, by a test at .05 / `n_tests`. The number of seeds stays as it
    is; the estimate is infinite where the spread between seeds is too large for any number of
    documents.
    """
    mean = bootstrap.mean(first, measure) - bootstrap.mean(second, measure)
    of_documents, of_seeds = bootstrap.variances(first, second, measure)
    return estimate_documents(mean, of_documents, of_seeds, bootstrap.n_documents, n_tests)


def estimate_documents(
    mean: float, of_documents: float, of_seeds: float, n_documents: int, n_tests: int = 1
) -> float:
    """Estimate the documents needed from a difference and its variances on `n_documents`.

    Example:
        >>> round(estimate_documents(0.01, 0.005**2, 0.0, 1000))
        1962
    """
    distance = float(norm.isf(LEVEL / (2 * n_tests)) + norm.ppf(POWER))
    room = (mean / distance) ** 2 - of_seeds  # the variance that documents may cause
    return n_documents * of_documents / room if room > 0 else inf
