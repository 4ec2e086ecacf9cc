"""The classical systems with labels known beforehand, against brute force over all sets."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from test_br_support import truth_of
from test_pcc import chain_probability

from brute_force import all_sets, found_sets, identity_weights, product_probability
from setrnn.data.ragged import Ragged
from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.classical.br_support import SupportInference
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.known import Known, given_known, known_log_prob

N = 5  # labels
logits_of_documents = arrays(np.float32, (3, N), elements=st.floats(-5, 5, width=32))
chains = arrays(np.float32, (N, N), elements=st.floats(-5, 5, width=32)).map(partial(np.triu, k=1))
# Of each label of each document: nothing, that it is right, or that it is wrong.
states = st.lists(st.lists(st.sampled_from("?+-"), min_size=N, max_size=N), min_size=3, max_size=3)
supports = st.sets(st.sampled_from(all_sets(N)), min_size=1, max_size=12).map(sorted)


def known_of(rows):
    return Known.of(
        *([[i for i, s in enumerate(row) if s == sign] for row in rows] for sign in "+-")
    )


def fits(labels, row):
    return all(
        (s != "+" or i in labels) and (s != "-" or i not in labels) for i, s in enumerate(row)
    )


def assert_brute_force(candidates, truths, rows, n_sets):
    """The n best of the sets that fit, with their own probabilities; shares given the known."""
    for document, (truth, row) in enumerate(zip(truths, rows, strict=True)):
        fitting = {labels: p for labels, p in truth.items() if fits(labels, row)}
        found = found_sets(candidates, document)
        assert len(found) == min(n_sets, len(fitting))
        best = sorted(fitting.values(), reverse=True)[: len(found)]
        np.testing.assert_allclose(list(found.values()), best, rtol=1e-4)
        for labels, probability in found.items():
            assert probability == pytest.approx(fitting[labels], rel=1e-4)
        if found and len(found) == len(fitting):
            total = sum(fitting.values())
            assert np.exp(known_log_prob(candidates)[document]) == pytest.approx(total, rel=1e-4)
            conditional = found_sets(given_known(candidates), document)
            assert conditional == pytest.approx({k: fitting[k] / total for k in found}, rel=1e-4)


@given(logits_of_documents, states, st.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_br_finds_the_best_sets_that_fit(logits, rows, n_sets):
    linear, documents = identity_weights(logits)
    found = BinaryRelevance(linear).candidates(documents, n_sets, known_of(rows))
    truths = [{each: product_probability(z, each) for each in all_sets(N)} for z in logits]
    assert_brute_force(found, truths, rows, n_sets)


@given(logits_of_documents, supports, states, st.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_br_support_finds_the_best_seen_sets_that_fit(logits, support, rows, n_sets):
    linear, documents = identity_weights(logits)
    model = SupportInference(BinaryRelevance(linear), Ragged.from_lists(support))
    found = model.candidates(documents, n_sets, known_of(rows))
    assert_brute_force(found, [truth_of(z, support) for z in logits], rows, n_sets)
    for document, row in enumerate(rows):
        if not any(fits(labels, row) for labels in support):
            present = [label for label, state in enumerate(row) if state == "+"]
            assert found.set_at(document, 0) == present
            assert found.log_probs[document, 0] == -np.inf


@given(logits_of_documents, chains, states, st.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_pcc_with_a_full_beam_finds_every_set_that_fits(logits, chain, rows, n_sets):
    linear, documents = identity_weights(logits)
    found = ClassifierChain(linear, chain, 2**N).candidates(documents, n_sets, known_of(rows))
    truths = [{each: chain_probability(z, chain, each) for each in all_sets(N)} for z in logits]
    assert_brute_force(found, truths, rows, 2**N)


@given(logits_of_documents, chains, states, st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_pcc_with_a_narrow_beam_finds_sets_that_fit_and_their_probability(
    logits, chain, rows, beam_width
):
    linear, documents = identity_weights(logits)
    model = ClassifierChain(linear, chain, beam_width)
    candidates = model.candidates(documents, beam_width, known_of(rows))
    for document, row in enumerate(rows):
        found = found_sets(candidates, document)
        assert 1 <= len(found) <= beam_width
        for labels, probability in found.items():
            assert fits(labels, row)
            truth = chain_probability(logits[document], chain, labels)
            assert probability == pytest.approx(truth, rel=1e-4)
