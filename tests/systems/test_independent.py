import numpy as np
import pytest
import torch

from brute_force import all_sets, found_sets, product_probability
from brute_force_sequences import TEXTS, tiny_network
from setrnn.config import Config
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError
from setrnn.systems.empty_set import NEVER
from setrnn.systems.independent import IndependentSystem
from setrnn.systems.known import Known

TOKENS = Ragged.from_lists(TEXTS)


@pytest.fixture(scope="module")
def system():
    return IndependentSystem(tiny_network("sigmoid"), Config(), torch.device("cpu"))


def test_the_sets_found_are_those_of_brute_force(system):
    candidates = system.candidates(TOKENS, 16)
    for document, logits in enumerate(system.logits(TOKENS)):
        found = found_sets(candidates, document)
        assert set(found) == set(all_sets(4))
        for labels, probability in found.items():
            assert probability == pytest.approx(product_probability(logits, labels), rel=1e-5)


def test_the_best_set_has_every_label_over_one_half(system):
    best = system.candidates(TOKENS, 1)
    for document, marginals in enumerate(system.marginals(TOKENS)):
        assert best.set_at(document, 0) == np.flatnonzero(marginals > 0.5).tolist()


def test_marginals_are_the_sums_over_all_sets(system):
    np.testing.assert_allclose(
        system.marginals(TOKENS), system.candidates(TOKENS, 16).marginals(4), atol=1e-6
    )


def test_given_sets_sum_to_one(system):
    found = system.candidates(TOKENS, 16)
    log_probs = system.set_log_probs(TOKENS, found.labels)
    np.testing.assert_allclose(np.exp(log_probs).sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(log_probs, found.log_probs, atol=1e-6)


def test_where_every_document_has_a_label_no_set_is_empty(system):
    never_empty = system.with_empty_shift(NEVER)
    found = never_empty.candidates(TOKENS, 15)
    assert (found.labels >= 0).any(axis=2).all()
    np.testing.assert_allclose(np.exp(found.log_probs).sum(axis=1), 1, rtol=1e-6)
    log_probs = never_empty.set_log_probs(TOKENS, found.labels)
    np.testing.assert_allclose(log_probs, found.log_probs, atol=1e-6)
    nobody = np.zeros((len(TOKENS), 0), dtype=np.int32)
    absent = np.tile(np.arange(4, dtype=np.int32), (len(TOKENS), 1))
    none_left = never_empty.candidates(TOKENS, 2, known=Known(nobody, absent))
    assert (none_left.log_probs == -np.inf).all()


def test_it_has_no_sequences(system):
    with pytest.raises(ConfigError, match="one by one"):
        system.candidates(TOKENS, 1, "sequences")
