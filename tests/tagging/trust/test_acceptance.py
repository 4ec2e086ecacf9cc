from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from setrnn.data import newsroom
from setrnn.errors import ConfigError
from setrnn.systems.true_marginals import TrueMarginals
from setrnn.tagging.documents import open_documents
from setrnn.tagging.trust.acceptance import (
    MIN_ACCEPTED,
    Acceptance,
    accuracy_interval,
    as_plain,
    check_target,
    fit_acceptance,
    fit_label_acceptance,
    fit_shown,
    lower_bound,
    reliability,
)
from setrnn.tagging.trust.calibrate import SearchedDocuments


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.random(n)
    return probs, rng.random(n) < probs


def test_the_calibration_error_is_the_distance_of_probability_and_accuracy():
    assert reliability(*drawn(200_000)).error < 0.005
    rng = np.random.default_rng(1)
    probs = 0.5 + rng.random(20_000) / 2
    is_right = rng.random(len(probs)) < probs - 0.3
    assert reliability(probs, is_right).error == pytest.approx(0.3, abs=0.01)
    assert reliability(np.array([0.2]), np.array([True])).error == pytest.approx(0.8)


def test_bins_hold_about_the_same_number_of_documents():
    found = reliability(*drawn(3000))
    assert found.n_documents.tolist() == [200] * 15
    assert (np.diff(found.mean_probability) > 0).all()
    assert found.spread.sum() == 3000
    assert reliability(np.full(100, 0.7), np.arange(100) < 60).n_documents.tolist() == [100]


def test_the_best_accuracy_means_the_same_for_each_target():
    rng = np.random.default_rng(3)
    probs = rng.random(400)
    is_right = rng.random(400) < 0.3 + 0.3 * probs
    found = [fit_acceptance("f1", probs, is_right, target, 0.9) for target in (0.7, 0.8, 0.9, 0.99)]
    assert {each.threshold for each in found} == {None}
    assert len({each.accuracy for each in found}) == 1
    assert 0.3 < found[0].accuracy < 0.8


@pytest.mark.parametrize("target", [0.8, 0.9])
def test_the_target_is_kept_as_often_as_was_asked_for(target):
    """Documents are drawn again each time; the true accuracy of the accepted is known."""
    n_draws, n_kept, shares = 300, 0, []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        probs = rng.beta(1.5, 1, size=1000)
        found = fit_acceptance("set", probs, rng.random(1000) < probs, target, confidence=0.9)
        shares.append(found.share)
        is_empty = found.threshold is None
        n_kept += is_empty or probs[found.accepts(probs)].mean() >= target
    assert n_kept >= binom.ppf(0.01, n_draws, 0.9)
    assert np.mean(shares) > 0.1, "it accepts something"


def test_an_acceptance_describes_what_it_accepts():
    probs, is_right = drawn(3000)
    probs = probs.round(3)
    found = fit_acceptance("f1", probs, is_right, 0.8, 0.95)
    is_accepted = found.accepts(probs)
    assert found.n_accepted == is_accepted.sum()
    assert found.share == is_accepted.mean()
    assert found.accuracy == is_right[is_accepted].mean()
    assert lower_bound(is_right[is_accepted].sum(), is_accepted.sum(), 0.95) >= 0.8
    assert found.threshold not in probs, "no document stands on the edge"
    assert Acceptance(**as_plain(found)) == found
    assert fit_acceptance("f1", probs, is_right, 0.7, 0.95).share > found.share


def test_equal_probabilities_are_accepted_together_or_not_at_all():
    probs = np.repeat([0.9, 0.5], [400, 600])
    is_right = np.concatenate([np.arange(400) % 20 > 0, np.arange(600) % 2 > 0])
    assert fit_acceptance("set", probs, is_right, 0.9, 0.9).n_accepted == 400
    assert fit_acceptance("set", np.full(1000, 0.7), is_right, 0.9, 0.9).threshold is None


def test_nothing_is_accepted_where_no_threshold_reaches_the_target():
    rng = np.random.default_rng(2)
    probs = rng.random(2000)
    found = fit_acceptance("set", probs, rng.random(2000) < 0.5 * probs, 0.9, 0.9)
    assert (found.threshold, found.share, found.n_accepted) == (None, 0.0, 0)
    assert not found.accepts(np.array([0.0, 1.0])).any()
    assert 0.3 < found.accuracy < 0.7, "the best that was reached"


def test_too_few_documents_show_nothing_even_if_all_are_right():
    """0.9 ** 21 is more than one in ten."""
    for n, is_enough in ((21, False), (22, True)):
        found = fit_acceptance("set", np.linspace(0, 1, n), np.full(n, True), 0.9, 0.9)
        assert (found.threshold is not None) == is_enough
        assert found.share == is_enough


@pytest.mark.parametrize(("n_right", "n"), [(0, 7), (3, 10), (95, 100), (20, 20)])
def test_the_bounds_are_those_of_clopper_and_pearson(n_right, n):
    low, high = accuracy_interval(n_right, n)
    assert low == 0 if n_right == 0 else binom.sf(n_right - 1, n, low) == pytest.approx(0.025)
    assert high == 1 if n_right == n else binom.cdf(n_right, n, high) == pytest.approx(0.025)


@pytest.mark.parametrize("value", [0, 1, -0.5, 90, float("nan")])
def test_shares_outside_of_0_and_1_are_refused(value):
    for values in ((value, 0.9), (0.9, value), (0.9, 0.9, value)):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            check_target(*values)


def take_documents(own, rows):
    """The pairs of some documents."""
    number = np.full(own.shape[0], -1, dtype=np.int32)
    number[rows] = np.arange(len(rows))
    kept = own.keep(number[own.document] >= 0)
    return replace(kept, document=number[kept.document], shape=(len(rows), own.shape[1]))


def share_shown(own, n_true, threshold):
    """The share of the true labels that are shown, by document."""
    is_shown = own.is_label & (own.probs >= threshold)
    n_shown = np.bincount(own.document[is_shown], minlength=len(n_true))
    return np.where(n_true == 0, 1.0, n_shown / np.maximum(n_true, 1))


@pytest.mark.parametrize("target", [0.8, 0.95])
def test_the_shown_labels_contain_as_many_true_ones_as_asked_for_over_20_splits(taggers, target):
    """The mean over splits of other documents' shares is the target, and no more than needed."""
    documents = [*newsroom.examples("valid"), *newsroom.examples("test")]
    opened = open_documents(documents)
    found = SearchedDocuments.collect(taggers["br"], opened, lambda progress: None)
    own, n_true = found.label_marginals, found.n_true
    shares = []
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(documents))
        fitted_on, others = order[:400], order[400:]
        shown = fit_shown(take_documents(own, fitted_on), n_true[fitted_on], target)
        shares.append(
            share_shown(take_documents(own, others), n_true[others], shown.threshold).mean()
        )
    error = np.std(shares) / np.sqrt(len(shares))
    assert target - 2 * error < np.mean(shares) < target + 0.01


@pytest.mark.parametrize("target", [0.5, 0.9])
def test_the_threshold_of_shown_labels_is_the_highest_that_suffices(target):
    own = draw_labels(0, n=300)
    n_true = np.bincount(own.document[own.is_label], minlength=300)
    shown = fit_shown(own, n_true, target)
    enough = [
        threshold
        for threshold in np.unique(own.probs)
        if share_shown(own, n_true, threshold).sum() / 301 >= target
    ]
    assert max(enough) >= shown.threshold > own.probs[own.probs < max(enough)].max()
    assert shown.recall == pytest.approx(share_shown(own, n_true, max(enough)).mean())
    assert shown.n_labels == pytest.approx((own.probs >= max(enough)).sum() / 300)


def test_labels_that_the_model_lacks_count_as_missed_and_may_make_a_target_unreachable():
    own = draw_labels(0, n=300)
    n_true = np.bincount(own.document[own.is_label], minlength=300)
    assert fit_shown(own, n_true + 1, 0.9).threshold is None
    assert fit_shown(own, n_true, 0.999).threshold is None  # of 300 documents, one more is missed
    assert fit_shown(own, n_true, 0.9).threshold is not None


def draw_labels(seed, n=1_500):
    """Probabilities of a safe, a doubtful and two rare labels, and what is true."""
    random = np.random.default_rng(seed)
    probs = random.beta(0.25, 0.4, (n, 4)).astype(np.float32)
    probs[:, 1] *= 0.8
    probs[:, 2:] *= random.random((n, 2)) < 0.02
    return TrueMarginals.of_matrices(probs, random.random(probs.shape) < probs)


def fit_labels(own):
    return fit_label_acceptance(own, own.probs, own.probs, 0.9, 0.9)


def test_a_safe_label_is_accepted_and_a_doubtful_one_is_not():
    found = fit_labels(draw_labels(0))
    assert MIN_ACCEPTED <= found.thresholds[0] <= 1
    assert found.thresholds[1] > 1
    assert found.thresholds[2] == found.thresholds[3]
    assert found.n_safe in (1, 3)  # rare labels are accepted together or not at all
    nothing = np.zeros((50, 3), dtype=np.float32)
    assert fit_labels(TrueMarginals.of_matrices(nothing, nothing > 0)).n_safe == 0


def test_accepted_labels_reach_the_target_with_the_confidence_asked_for():
    n_tries, n_missed = 60, 0
    for seed in range(n_tries):
        threshold = fit_labels(draw_labels(seed)).thresholds[0]
        new = np.linspace(0, 1, 10_001)[1:-1]
        density = new ** (0.25 - 1) * (1 - new) ** (0.4 - 1)
        above = new >= threshold
        accuracy = (new * density)[above].sum() / density[above].sum() if above.any() else 1.0
        n_missed += accuracy < 0.9
    assert n_missed <= 0.2 * n_tries
