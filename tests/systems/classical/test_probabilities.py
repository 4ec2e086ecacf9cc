"""The classical systems against brute force over all sets of four labels."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brute_force import all_sets, found_sets, sigmoid
from setrnn.data.ragged import Ragged
from setrnn.systems.classical.br import BinaryRelevance, SupportInference
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.classical.system import LinearWeights
from setrnn.systems.known import Known, given_known, known_log_prob
from setrnn.systems.products import NEVER

NAMES = ("br", "br-support", "pcc")
N, N_DOCUMENTS = 4, 3
weight = st.floats(-5, 5, width=32)
all_logits = arrays(np.float32, (N_DOCUMENTS, N), elements=weight)
chains = arrays(np.float32, (N, N), elements=weight).map(partial(np.triu, k=1))
supports = st.sets(st.sampled_from(all_sets(N)[1:]), min_size=1).map(sorted)
# Of each label of each document: nothing, that it is right, or that it is wrong.
states = st.lists(
    st.text("?+-", min_size=N, max_size=N), min_size=N_DOCUMENTS, max_size=N_DOCUMENTS
)


def chain_probability(logits, chain, labels):
    """Multiply p(y_l | x, y_1 .. y_{l-1}), one label after the other."""
    probability = 1.0
    for label, logit in enumerate(np.asarray(logits, dtype=float)):
        log_odds = logit + sum(float(chain[other, label]) for other in labels if other < label)
        probability *= sigmoid(log_odds) if label in labels else sigmoid(-log_odds)
    return probability


def no_weights(n_labels):
    """Weights that are not asked: the systems get log-odds."""
    return LinearWeights(np.zeros((1, n_labels), np.float32), np.zeros(n_labels, np.float32))


def make(name, logits, chain, support, shift, beam_width=2**N):
    """A system, and {set: p} of each document."""
    linear, sets = no_weights(N), all_sets(N)
    if name == "br":
        system, chain = BinaryRelevance(None, linear, empty_shift=shift), np.zeros((N, N))
    elif name == "pcc":
        system = ClassifierChain(None, linear, chain, beam_width, empty_shift=shift)
    else:
        sets, chain = [(), *support], np.zeros((N, N))
        system = SupportInference(None, linear, Ragged.from_lists(sets), empty_shift=shift)
    truths = []
    for row in logits:
        truth = {labels: chain_probability(row, chain, labels) for labels in sets}
        truth[()] *= np.exp(shift)
        total = sum(truth.values())
        truths.append({labels: p / total for labels, p in truth.items()})
    return system, truths


def known_of(rows):
    return Known.of(
        *([[i for i, s in enumerate(row) if s == sign] for row in rows] for sign in "+-")
    )


def fits(labels, row):
    return all(s == "?" or (s == "+") == (i in labels) for i, s in enumerate(row))


problems = {
    "name": st.sampled_from(NAMES),
    "logits": all_logits,
    "chain": chains,
    "support": supports,
    "shift": st.sampled_from([0.0, NEVER, -2.0, 3.0]),
}


@given(**problems, rows=st.none() | states, n_sets=st.integers(1, 20))
@settings(deadline=None)
def test_the_best_sets_that_fit_are_found(name, logits, chain, support, shift, rows, n_sets):
    system, truths = make(name, logits, chain, support, shift)
    found = system.find_sets(logits, n_sets, None if rows is None else known_of(rows))
    for document, (truth, row) in enumerate(zip(truths, rows or ["????"] * 3, strict=True)):
        fitting = {labels: p for labels, p in truth.items() if fits(labels, row) and p > 0}
        own = found_sets(found, document)
        assert own == pytest.approx({labels: fitting[labels] for labels in own}, rel=1e-4)
        n_wanted = len(fitting) if name == "pcc" else min(n_sets, len(fitting))  # all of the beam
        best = sorted(fitting.values(), reverse=True)[:n_wanted]
        np.testing.assert_allclose(list(own.values())[:n_wanted], best, rtol=1e-4)
        if not fitting:
            present = [label for label, state in enumerate(row) if state == "+"]
            assert found.set_at(document, 0) == present
            assert found.log_probs[document, 0] == -np.inf
        if rows and fitting and len(own) == len(fitting):
            total = sum(fitting.values())
            assert np.exp(known_log_prob(found)[document]) == pytest.approx(total, rel=1e-4)
            shares = found_sets(given_known(found), document)
            assert shares == pytest.approx({k: fitting[k] / total for k in own}, rel=1e-4)


@given(**problems)
@settings(deadline=None)
def test_given_sets_labels_and_sizes_have_the_sums_of_all_sets(name, logits, chain, support, shift):
    system, truths = make(name, logits, chain, support, shift)
    sets = Ragged.from_lists(all_sets(N)).padded()
    asked = np.exp(system.score_sets(logits, np.broadcast_to(sets, (len(logits), *sets.shape))))
    found = system.find_sets(logits, 1)
    marginals, table = found.marginals(N), found.label_size_probs(N, also=range(N))
    for document, truth in enumerate(truths):
        expected = [truth.get(labels, 0.0) for labels in all_sets(N)]
        np.testing.assert_allclose(asked[document], expected, rtol=1e-4, atol=1e-9)
        assert table.empty[document] == pytest.approx(truth[()], rel=1e-4)
        for label in range(N):
            p = sum(p for labels, p in truth.items() if label in labels)
            if name == "br-support":  # it takes the larger of two
                p = max(p, sigmoid(logits[document, label]))
            assert marginals[document, label] == pytest.approx(p, abs=1e-5)
            place = table.labels[document].tolist().index(label)
            for size in range(1, min(N, table.probs.shape[2]) + 1):
                own = sum(p for s, p in truth.items() if label in s and len(s) == size)
                assert table.probs[document, place, size - 1] == pytest.approx(own, abs=1e-5)


@given(all_logits, chains, st.none() | states, st.integers(1, 3))
@settings(deadline=None)
def test_a_narrow_beam_gives_exact_probabilities_of_what_it_finds(logits, chain, rows, beam_width):
    system, truths = make("pcc", logits, chain, [], 0.0, beam_width)
    found = system.find_sets(logits, 5, None if rows is None else known_of(rows))
    for document, truth in enumerate(truths):
        own = found_sets(found, document)
        assert 1 <= len(own) <= beam_width + 1  # the empty set is always among them
        assert own == pytest.approx({labels: truth[labels] for labels in own}, rel=1e-4)
        assert all(fits(labels, "????" if rows is None else rows[document]) for labels in own)


@pytest.mark.parametrize("name", NAMES)
def test_a_likely_empty_set_is_found_among_few(name):
    logits = np.random.default_rng(0).normal(-1, 1.5, (3, N)).astype(np.float32)
    chain = np.zeros((N, N), dtype=np.float32)
    system, _ = make(name, logits, chain, all_sets(N)[1:], 12.0)
    assert (system.find_sets(logits, 1).labels[:, 0] < 0).all()


def test_log_odds_beyond_the_range_of_exp_stay_finite():
    logits = np.array([[900.0, -900.0, 800.0, 0.0]], dtype=np.float32)
    support = Ragged.from_lists([(), (0, 2), (1,)])
    found = SupportInference(None, no_weights(N), support).find_sets(logits, 3)
    assert np.isfinite(found.log_probs).all()
    assert found.set_at(0, 0) == [0, 2]


def test_sets_of_many_labels_fit_in_a_beam():
    """More labels in a set than any power of two of columns; the widest and the empty set."""
    logits = np.stack([np.full(21, 3.0), np.full(21, -3.0)]).astype(np.float32)
    chain = np.zeros((21, 21), dtype=np.float32)
    found = ClassifierChain(None, no_weights(21), chain, 3).find_sets(logits, 3)
    assert found.set_at(0, 0) == list(range(21))
    assert found.set_at(1, 0) == []


def test_how_many_sets_are_asked_for_does_not_change_the_best():
    """A beam of one takes the first label; a wider one finds the better set without it."""
    logits = np.array([[0.2, 6.0]], dtype=np.float32)
    chain = np.array([[0.0, -6.0], [0.0, 0.0]], dtype=np.float32)
    system = ClassifierChain(None, no_weights(2), chain, 1)
    best = {tuple(system.find_sets(logits, n).set_at(0, 0)) for n in (1, 2, 4)}
    assert len(best) == 1
