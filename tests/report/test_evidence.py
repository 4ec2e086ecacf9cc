from dataclasses import replace

import numpy as np
import pytest
from known_answers import GOOD, POOR, compared

from setrnn.indicators import indicator_matrix
from setrnn.metrics import f1_by_label
from setrnn.report import evidence


def test_the_interval_of_a_mean_is_that_of_theory():
    values = np.random.default_rng(0).normal(0.3, 1.0, 400)
    found = evidence.resample(
        400, 400, lambda weights: weights @ values[:, None] / weights.sum(axis=1, keepdims=True)
    )
    error = values.std() / 20
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_runs_that_differ_widen_the_interval():
    def same(weights):
        return np.zeros((len(weights), 3))

    def spread(weights):
        return np.tile([-1.0, 0.0, 1.0], (len(weights), 1))

    assert evidence.resample(50, 50, same).high == 0
    found = evidence.resample(50, 50, spread)
    assert found.low < -0.4
    assert found.high > 0.4
    assert found.p > 0.5


def test_p_is_even_where_there_is_no_difference():
    """Under no difference, p is below .2 about one time in five."""
    p_values = []
    for seed in range(40):
        values = np.random.default_rng(seed).normal(0, 1, (1, 60))
        p_values.append(evidence.resample(60, 60, evidence._averaging(values)).p)
    assert 0.08 < np.mean(np.array(p_values) < 0.2) < 0.35


def test_rare_labels_are_the_rarer_half_and_measured_as_metrics_do():
    comparison, records = compared({"set-rnn": GOOD, "seq2seq-rnn": POOR})
    ours, theirs = (
        [each for each in records if each.method == name] for name in ("set-rnn", "seq2seq-rnn")
    )
    found = evidence.compare_rare_labels(comparison, ours, theirs)
    assert found.n_labels == 4
    counts = np.array(comparison.label_counts)
    rare = np.argsort(counts)[:4]
    assert found.most_documents == counts[rare].max()
    truth = indicator_matrix(comparison.truth, comparison.n_labels)
    predicted = indicator_matrix(ours[0].test.predicted["set"], comparison.n_labels)
    expected = f1_by_label(truth, predicted)[rare].mean()
    assert found.first == pytest.approx(expected)
    assert found.difference.mean == pytest.approx(found.first - found.second)


def test_growth_is_the_gain_on_larger_sets_less_that_on_smaller():
    comparison, records = compared({"set-rnn": {"set": GOOD, "sequence": POOR}})
    found = evidence.compare_gains_by_size(comparison, records)
    gains = evidence._document_gains(comparison, records)[0]
    is_small = np.array([len(row) <= found.middle for row in comparison.truth])
    assert 0 < is_small.sum() < len(is_small)
    expected = gains[~is_small].mean() - gains[is_small].mean()
    assert found.growth.mean == pytest.approx(expected)
    assert found.growth.low < expected < found.growth.high


def test_accepted_documents_are_right_often_enough():
    comparison, records = compared({"set-rnn": 0.0})
    (found,) = evidence.fit_acceptances(comparison, records)
    assert found.share == 1.0  # all are right
    comparison, records = compared({"set-rnn": 3.0})
    (found,) = evidence.fit_acceptances(comparison, records)
    assert found.share == 0.0  # all are wrong


def changed_in(records, rule, documents, sets):
    """Give other predictions to the first run, for some documents."""
    record = records[0]
    predicted = [list(row) for row in record.test.predicted[rule]]
    for document in documents:
        predicted[document] = sets[document]
    results = replace(record.test, predicted={**record.test.predicted, rule: predicted})
    return [replace(record, test=results)]


def rarest(comparison, n):
    """Return documents that have the rarest label."""
    label = comparison.n_labels - 1
    return [number for number, row in enumerate(comparison.truth) if label in row][:n], label


@pytest.mark.parametrize(("n", "least"), [(1, 1.0), (4, 0.125)])
def test_rare_labels_show_no_more_than_a_sign_test_of_the_documents_that_differ(n, least):
    comparison, records = compared({"set-rnn": 0.0}, n_documents=300)
    documents, label = rarest(comparison, n)
    assert len(documents) == n
    without = {each: [x for x in comparison.truth[each] if x != label] for each in documents}
    worse = changed_in(records, "set", documents, without)
    found = evidence.compare_rare_labels(comparison, records, worse)
    assert found.difference.mean > 0
    assert found.difference.p >= least


def test_the_interval_of_rare_labels_contains_the_difference_that_was_measured():
    """The F1 of a label with one document is 0 in every draw without it."""
    comparison, records = compared({"set-rnn": 0.0}, n_documents=300)
    perfect = changed_in(records, "set", range(300), dict(enumerate(comparison.truth)))
    nothing = changed_in(records, "set", range(300), {document: [] for document in range(300)})
    found = evidence.compare_rare_labels(comparison, perfect, nothing)
    assert found.difference.low <= found.difference.mean <= found.difference.high


@pytest.mark.parametrize(("n", "least"), [(1, 1.0), (4, 0.125)])
def test_a_gain_by_size_shows_no_more_than_a_sign_test_of_the_documents_that_differ(n, least):
    comparison, records = compared({"set-rnn": 0.0}, n_documents=300)
    large = [number for number, row in enumerate(comparison.truth) if len(row) >= 3][:n]
    worse = changed_in(records, "sequence", large, {each: [] for each in large})
    growth = evidence.compare_gains_by_size(comparison, worse).growth
    assert growth.mean > 0
    assert growth.p >= least


@pytest.mark.parametrize(("n", "least"), [(1, 1.0), (4, 0.125)])
def test_entropies_show_no_more_than_a_sign_test_of_the_documents_that_differ(n, least):
    _, (record,) = compared({"set-rnn": 0.0}, n_documents=300)
    same = replace(record, test=replace(record.test, order_entropy=[0.5] * 300))
    spread = [0.9] * n + [0.5] * (300 - n)
    more = replace(record, test=replace(record.test, order_entropy=spread))
    found = evidence.compare_entropies([more], [same])
    assert found.mean > 0
    assert found.p >= least
