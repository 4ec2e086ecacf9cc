"""Truths of statistics: known formulas, simulations, invariances; which system is best."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from made_comparison import made_comparison
from setrnn.comparison.records import Comparison, Failure, Record, TestResults
from setrnn.comparison.statistics import Bootstrap, Entry, estimate_documents, holm
from setrnn.errors import DataError
from setrnn.metrics import LOWER_IS_BETTER, MEASURES, evaluate_sets, indicator_matrix

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


def test_scores_are_those_of_evaluate_sets():
    comparison, records = made_comparison(n_documents=60)
    made = Bootstrap(comparison, records, n_draws=99)
    for record in records:
        for rule, sets in record.test.predicted.items():
            expected = evaluate_sets(
                indicator_matrix(comparison.truth, comparison.n_labels),
                indicator_matrix(sets, comparison.n_labels),
            )
            for measure in MEASURES:
                scores = made.scores(Entry(record.method, rule), measure)
                assert scores[record.seed] == getattr(expected, measure)


def test_a_draw_measures_the_documents_drawn():
    """Frequent labels only: a draw misses none, so that each draw is an evaluation."""
    random = np.random.default_rng(0)
    sets = [np.flatnonzero(row).tolist() for row in random.random((80, 3)) < 0.5]
    predicted = [np.flatnonzero(row).tolist() for row in random.random((80, 3)) < 0.4]
    comparison = comparison_of(sets, 3)
    made = Bootstrap(comparison, [record_of("a", predicted)], n_draws=99)
    ((weights, _),) = made._documents._blocks()  # fewer draws than a block has
    assert weights.shape == (80, 99)
    assert (weights.sum(axis=0) == 80).all()
    for draw in range(99):
        drawn = np.repeat(np.arange(80), weights[:, draw].astype(int))
        expected = evaluate_sets(
            indicator_matrix([sets[document] for document in drawn], 3),
            indicator_matrix([predicted[document] for document in drawn], 3),
        )
        for measure in MEASURES:
            value = made._draws(A, measure)[draw]
            assert value == pytest.approx(getattr(expected, measure), rel=1e-5)


def test_the_interval_of_a_mean_is_that_of_the_normal_formula():
    is_right = np.arange(400) < 280
    summary = drawn_accuracy(a=is_right, draws=4999).summary(A, "subset_accuracy")
    error = 1.96 * np.sqrt(0.7 * 0.3 / 400)
    assert summary.mean == 0.7
    assert summary.low == pytest.approx(0.7 - error, abs=0.004)
    assert summary.high == pytest.approx(0.7 + error, abs=0.004)


def test_an_interval_holds_the_true_value_95_times_in_100():
    random = np.random.default_rng(0)
    n_held = 0
    for seed in range(200):
        summary = drawn_accuracy(a=random.random(150) < 0.7, seed=seed).summary(
            A, "subset_accuracy"
        )
        n_held += summary.low <= 0.7 <= summary.high
    assert 180 <= n_held <= 198


def test_the_interval_of_label_f1_is_not_low_where_labels_are_rare():
    """Labels of about two documents each: a plain bootstrap is a standard error too low."""
    random = np.random.default_rng(0)
    scores, intervals = [], []
    for seed in range(100):
        true = random.random((200, 40)) < 0.01
        truth = [np.flatnonzero(row).tolist() for row in true]
        sets = [np.flatnonzero(row).tolist() for row in true & (random.random((200, 40)) < 0.6)]
        made = Bootstrap(comparison_of(truth, 40), [record_of("a", sets)], n_draws=199, seed=seed)
        summary = made.summary(A, "label_f1")
        scores.append(summary.mean)
        intervals.append((summary.low, summary.high))
        assert made._draws(A, "label_f1").mean() == pytest.approx(summary.mean, abs=0.06)
    low, high = np.array(intervals).T
    assert np.mean((low + high) / 2 - scores) == pytest.approx(0, abs=0.005)
    assert 85 <= ((low <= np.mean(scores)) & (np.mean(scores) <= high)).sum() <= 99


def test_p_is_about_uniform_where_there_is_no_difference():
    random = np.random.default_rng(1)
    p = []
    for seed in range(200):
        made = drawn_accuracy(a=random.random(150) < 0.7, b=random.random(150) < 0.7, seed=seed)
        p.append(made.difference(A, B, "subset_accuracy").p)
    assert 0.01 <= np.mean(np.array(p) < 0.05) <= 0.10
    assert 0.4 <= np.mean(np.array(p) < 0.5) <= 0.6


def test_luck_of_the_seed_is_not_taken_for_a_difference():
    """Runs of a system that differ much: over documents alone, half of the p were below .05."""
    random = np.random.default_rng(2)
    both, documents_alone = [], []
    for seed in range(50):
        chances = random.normal(0.7, 0.08, (2, 3, 1))
        a, b = random.random((2, 3, 300)) < chances
        made = drawn_accuracy(a=a, b=b, seed=seed)
        both.append(made.difference(A, B, "subset_accuracy").p)
        made = drawn_accuracy(a=a[0], b=b[0], seed=seed)
        documents_alone.append(made.difference(A, B, "subset_accuracy").p)
    assert np.mean(np.array(documents_alone) < 0.05) > 0.4
    assert np.mean(np.array(both) < 0.05) < 0.25


def test_seeds_spread_a_mean_as_much_as_their_standard_deviation_says():
    """All documents alike: what is left is the spread over runs, s² / n."""
    made = drawn_accuracy(a=[[1] * 50, [1] * 50, [0] * 50], draws=4999)
    drawn = made._draws(A, "subset_accuracy")
    summary = made.summary(A, "subset_accuracy")
    assert summary.std == pytest.approx(np.std([1, 1, 0], ddof=1))
    assert drawn.std() == pytest.approx(summary.std / np.sqrt(3), rel=0.05)


def test_runs_are_drawn_for_each_system_by_itself():
    """The same runs under two names: drawn together they would never differ."""
    runs = [[1] * 50, [1] * 50, [0] * 50]
    difference = drawn_accuracy(a=runs, b=runs).difference(A, B, "subset_accuracy")
    assert difference.mean == 0
    assert difference.low < -0.3 < 0.3 < difference.high


def test_differences_are_paired():
    """Eight documents of 400 tell two systems apart, though their intervals overlap."""
    numbers = np.arange(400)
    made = drawn_accuracy(a=numbers < 288, b=numbers < 280, draws=999)
    first, second = (made.summary(entry, "subset_accuracy") for entry in (A, B))
    assert first.low < second.mean < first.mean < second.high
    assert made.difference(A, B, "subset_accuracy").p < 0.05
    # The same accuracies of documents that have nothing to do with each other are not.
    shuffled = np.random.default_rng(0).permutation(numbers < 280)
    made = drawn_accuracy(a=numbers < 288, b=shuffled, draws=999)
    assert made.difference(A, B, "subset_accuracy").p > 0.05


def test_rules_of_a_system_are_compared_on_the_same_runs():
    """One rule is right for one document more in every run, but the runs differ by half."""
    n_right = (100, 50, 20)
    records = [
        Record(
            "a",
            seed,
            "0",
            "set",
            test=TestResults(
                {
                    rule: [[0] if number < n + more else [1] for number in range(110)]
                    for rule, more in (("set", 0), ("f1", 8))
                },
                {},
            ),
        )
        for seed, n in enumerate(n_right)
    ]
    made = Bootstrap(comparison_of([[0]] * 110, 2), records, n_draws=199)
    assert made.difference(Entry("a", "f1"), A, "subset_accuracy").low > 0


def test_the_order_of_documents_labels_and_records_changes_nothing():
    comparison, records = made_comparison(("br", "set-rnn"), n_documents=60)
    random = np.random.default_rng(0)
    documents, labels = random.permutation(60), random.permutation(comparison.n_labels)
    new_number = np.argsort(labels)

    def moved(rows):
        return [[int(new_number[label]) for label in rows[document]] for document in documents]

    other = replace(
        comparison,
        ids=tuple(comparison.ids[document] for document in documents),
        labels=tuple(comparison.labels[label] for label in labels),
        truth=moved(comparison.truth),
    )
    moved_records = [
        replace(
            record,
            test=replace(
                record.test,
                predicted={rule: moved(rows) for rule, rows in record.test.predicted.items()},
            ),
        )
        for record in reversed(records)
    ]
    first, second = Bootstrap(comparison, records, 99), Bootstrap(other, moved_records, 99)
    a, b = Entry("set-rnn", "f1"), Entry("br", "set")
    for measure in MEASURES:
        one, two = first.summary(a, measure), second.summary(a, measure)
        assert (one.mean, one.low, one.high) == pytest.approx((two.mean, two.low, two.high))
        assert first.difference(a, b, measure).p == second.difference(a, b, measure).p


def test_a_seed_repeats_the_draws_and_another_changes_them():
    made = made_comparison(("set-rnn",), n_documents=60)
    entry = Entry("set-rnn", "set")
    same = [Bootstrap(*made, n_draws=99, seed=3).summary(entry, "label_f1") for _ in range(2)]
    assert same[0] == same[1]
    assert Bootstrap(*made, n_draws=99, seed=4).summary(entry, "label_f1") != same[0]


def test_failed_runs_are_left_out():
    comparison, records = made_comparison(("br", "set-rnn"), n_documents=30)
    failed = [
        replace(record, test=None, failure=Failure("ValueError", "no"))
        if record.method == "br" or record.seed == 1
        else record
        for record in records
    ]
    made = Bootstrap(comparison, failed, n_draws=99)
    assert {entry.system for entry in made.entries} == {"set-rnn"}
    assert made.summary(Entry("set-rnn", "set"), "micro_f1").n_seeds == 2
    nothing = Bootstrap(comparison, failed[:1], n_draws=99)
    assert nothing.entries == ()
    with pytest.raises(DataError, match="no run succeeded"):
        nothing.standing([], "micro_f1")


def test_predictions_of_other_documents_are_refused():
    with pytest.raises(DataError, match=r"Run 'a-0' has 3 predictions .* 4 test documents"):
        Bootstrap(comparison_of([[0]] * 4, 1), [record_of("a", [[0]] * 3)])


def test_so_many_documents_show_the_difference_with_a_chance_of_80_percent():
    needed = estimate_documents(0.02, 0.01**2, 0.0, n_documents=500, n_tests=5)
    random = np.random.default_rng(0)
    spread = 0.01 * (500 / needed.n_documents) ** 0.5
    p = 2 * norm.sf(np.abs(random.normal(0.02, spread, 20_000)) / spread)
    assert (p < 0.05 / 5).mean() == pytest.approx(0.8, abs=0.01)


def test_no_number_of_documents_makes_up_for_seeds_that_differ_too_much():
    needed = estimate_documents(0.02, 0.01**2, 0.02**2, 500)
    assert needed.needs_seeds
    without = estimate_documents(0.02, 0.01**2, 0.0, 500)
    assert needed.n_documents == without.n_documents
    assert not without.needs_seeds


@pytest.mark.parametrize("measure", MEASURES)
def test_the_best_of_clearly_different_systems_stands(measure):
    numbers = np.arange(300)
    made = drawn_accuracy(b=numbers < 200, a=numbers < 290, c=numbers < 50)
    standing = made.standing([B, A, C], measure)
    assert standing.best == A
    assert standing.stands
    assert not standing.tied
    assert set(standing.p) == {B, C}
    assert all(p < 0.05 for p in standing.p.values())
    means = {entry: made.mean(entry, measure) for entry in (A, B, C)}
    extreme = min if measure in LOWER_IS_BETTER else max
    assert extreme(means, key=means.get) == A


def test_of_two_alike_neither_stands():
    numbers = np.arange(100)
    made = drawn_accuracy(a=numbers < 80, b=numbers < 80, c=numbers < 10)
    standing = made.standing([A, B, C], "subset_accuracy")
    assert not standing.stands
    assert standing.tied == {B}
    assert standing.p[B] == 1


@pytest.mark.parametrize(("n_differing", "least"), [(0, 1), (1, 1), (4, 0.125), (6, 0.03125)])
def test_few_documents_that_differ_show_no_more_than_a_sign_test(n_differing, least):
    numbers = np.arange(60)
    made = drawn_accuracy(a=numbers < 30 + n_differing, b=numbers < 30, draws=999)
    for measure in MEASURES:
        assert made.difference(A, B, measure).p >= least
    assert not (made.standing([A, B], "subset_accuracy").stands and least > 0.05)


def test_standing_is_corrected_for_many():
    """A difference that one test finds is not found among many."""
    numbers = np.arange(200)
    systems = {"a": numbers < 107, **dict.fromkeys("bcdefghij", numbers < 101)}
    made = drawn_accuracy(**systems, draws=999)
    alone = made.difference(A, B, "subset_accuracy").p
    assert alone < 0.05
    standing = made.standing(list(made.entries), "subset_accuracy")
    assert standing.p[B] >= 0.05
    assert not standing.stands
    pairs = made.pairs(list(made.entries), "subset_accuracy")
    assert len(pairs) == 45
    assert pairs[A, B].mean == made.difference(A, B, "subset_accuracy").mean
    expected = holm([made.difference(*pair, "subset_accuracy").p for pair in pairs])
    assert [difference.p for difference in pairs.values()] == expected


def test_holm_corrects_a_textbook_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.6, 0.7]) == [1, 1]
