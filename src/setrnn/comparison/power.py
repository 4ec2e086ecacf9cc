"""Power: how many test documents would show a difference that is not significant yet."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from scipy.stats import norm

from setrnn.comparison.statistics import LEVEL, Bootstrap, Entry

POWER = 0.8  # the chance that a test with so many documents shows the difference


@dataclass(frozen=True)
class Needed:
    """The test documents that would show a difference as large as the measured one."""

    n_documents: float  # infinite where nothing was measured
    needs_seeds: bool  # whether it also takes many more seeds: their spread hides the difference


def documents_needed(
    bootstrap: Bootstrap, first: Entry, second: Entry, measure: str, n_tests: int
) -> Needed:
    """Estimate how many test documents would show the difference of two entries.

    They show it with a chance of 80%, by a test at .05 / `n_tests`: the strictest step of Holm's
    method over the tests of the family.
    """
    mean = bootstrap.mean(first, measure) - bootstrap.mean(second, measure)
    of_documents, of_seeds = bootstrap.variances(first, second, measure)
    return estimate_documents(mean, of_documents, of_seeds, bootstrap.n_documents, n_tests)


def estimate_documents(
    mean: float, of_documents: float, of_seeds: float, n_documents: int, n_tests: int = 1
) -> Needed:
    """Estimate the documents needed from a difference and its variances on `n_documents`.

    The variance of the documents shrinks with their number, that of the seeds does not. Where the
    seeds take more than half of the variance that this power allows, the estimate is for so many
    seeds that theirs does not matter.

    Example:
        >>> round(estimate_documents(0.01, 0.005**2, 0.0, 1000).n_documents)
        1962
    """
    distance = float(norm.isf(LEVEL / (2 * n_tests)) + norm.ppf(POWER))
    most = (mean / distance) ** 2  # the variance at which the test has this power
    needs_seeds = of_seeds > most / 2
    room = most if needs_seeds else most - of_seeds
    return Needed(n_documents * of_documents / room if room > 0 else inf, needs_seeds)
