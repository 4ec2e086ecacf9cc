"""How many documents show a difference: known answers."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.stats import norm

from made_comparison import made_comparison
from setrnn.comparison.power import documents_needed, estimate_documents
from setrnn.comparison.statistics import Entry, bootstrap


def test_so_many_documents_show_the_difference_with_a_chance_of_80_percent():
    needed = estimate_documents(0.02, 0.01**2, 0.0, n_documents=500, n_tests=5)
    random = np.random.default_rng(0)
    spread = 0.01 * (500 / needed.n_documents) ** 0.5
    p = 2 * norm.sf(np.abs(random.normal(0.02, spread, 20_000)) / spread)
    assert (p < 0.05 / 5).mean() == pytest.approx(0.8, abs=0.01)


def test_more_tests_and_smaller_differences_need_more_documents():
    plain = estimate_documents(0.02, 0.01**2, 0.0, 500).n_documents
    assert estimate_documents(0.02, 0.01**2, 0.0, 500, n_tests=10).n_documents > plain
    assert estimate_documents(0.01, 0.01**2, 0.0, 500).n_documents == pytest.approx(4 * plain)
    assert estimate_documents(0.0, 0.01**2, 0.0, 500).n_documents == inf


def test_no_number_of_documents_makes_up_for_seeds_that_differ_too_much():
    needed = estimate_documents(0.02, 0.01**2, 0.02**2, 500)
    assert needed.needs_seeds
    without = estimate_documents(0.02, 0.01**2, 0.0, 500)
    assert needed.n_documents == without.n_documents
    assert not without.needs_seeds


def test_the_variances_of_a_bootstrap_are_those_of_documents_and_of_seeds():
    comparison, records = made_comparison(("br", "set-rnn"), n_seeds=3, n_documents=200)
    br, own = Entry("br", "set"), Entry("set-rnn", "set")
    draws = bootstrap(comparison, records, draws=999)
    of_documents, of_seeds = draws.variances(br, own, "subset_accuracy")
    # As many documents as there are show a difference that is significant by far.
    needed = documents_needed(draws, br, own, "subset_accuracy", 1)
    assert needed.n_documents < 200 or draws.difference(br, own, "subset_accuracy").p > 0.001
    runs = [each for each in records if each.method == "set-rnn"]
    same = [replace(runs[0], seed=seed) for seed in range(3)]
    equal = bootstrap(comparison, [records[0], *same], draws=999)
    assert equal.variances(br, own, "subset_accuracy")[1] == pytest.approx(0, abs=1e-9)
    assert of_documents > 0
    assert of_seeds >= 0
