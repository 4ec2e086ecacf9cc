"""Recurrent systems end to end, against brute force over all sets of 4 labels."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from brute_force import found_sets
from brute_force_sequences import (
    EVERY_DECODER,
    TEXTS,
    batch_of,
    sequence_log_probs,
    set_log_probs,
    tiny_network,
)
from setrnn.config import Config, ModelSettings, SearchSettings
from setrnn.data.ragged import Ragged
from setrnn.methods import METHODS
from setrnn.systems import recurrent
from setrnn.systems.known import Known
from setrnn.systems.registry import find_system

EVERY_SOURCE = pytest.mark.parametrize("source", ["sets", "sequences"])
TOKENS = Ragged.from_lists(TEXTS)
EVERYTHING = 200  # a beam wider than all sequences of 4 labels
CPU = torch.device("cpu")
# Labels known of each document, and labels known to be wrong.
KNOWN = Known.of([(1, 3), (), (2,), ()], [(0,), (), (), (2, 0)])
METHOD = {each.decoder: each for each in METHODS.values() if each.is_network}
METHOD["feeding"] = replace(METHOD["rnn"], decoder="feeding")


def make_system(decoder="rnn", beam_width=EVERYTHING, max_labels=50, **settings):
    sizes = {"encoder_units": 6, "decoder_units": 5, "dropout": 0.0, "word_dropout": 0.0}
    config = Config(
        model=ModelSettings(max_labels=max_labels, **(sizes | settings)),
        search=SearchSettings(beam_width=beam_width),
    )
    return find_system(METHOD[decoder])(tiny_network(decoder, **settings), config, CPU)


def assert_same_candidates(one, other):
    for document in range(len(one)):
        found, expected = found_sets(one, document), found_sets(other, document)
        assert list(found) == list(expected)
        assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-4)


@EVERY_DECODER
def test_candidates_from_sequences_have_the_probability_of_the_best(decoder):
    system = make_system(decoder)
    network = system.network
    truth = sequence_log_probs(network.decoder, network.encode(batch_of()))
    candidates = system.candidates(TOKENS, 16, source="sequences")
    for document in range(len(TEXTS)):
        best = {}
        for sequence, log_prob in truth.items():
            labels = tuple(sorted(sequence))
            best[labels] = max(best.get(labels, 0.0), float(log_prob[document].exp()))
        assert found_sets(candidates, document) == pytest.approx(best, abs=1e-4)


@EVERY_SOURCE
@pytest.mark.parametrize("max_labels", [1, 2])
def test_no_candidate_is_larger_than_the_limit(source, max_labels):
    candidates = make_system(max_labels=max_labels).candidates(TOKENS, 16, source)
    assert candidates.labels.shape[2] == max_labels
    for document in range(len(TEXTS)):
        assert max(map(len, found_sets(candidates, document))) == max_labels


def test_marginals_are_near_those_of_all_sets():
    system = make_system()
    truth = set_log_probs(system.network.decoder, system.network.encode(batch_of()))
    marginals = system.marginals(TOKENS)
    for label in range(4):
        expected = sum(p.exp() for labels, p in truth.items() if label in labels)
        error = np.abs(marginals[:, label] - expected.numpy())
        assert error.mean() < 0.02
        assert error.max() < 0.06
    candidates = system.candidates(TOKENS, 16)
    np.testing.assert_array_equal(system.marginals(TOKENS, candidates), marginals)


@pytest.mark.parametrize("is_training", [True, False])
def test_prediction_has_no_dropout_and_leaves_training_as_it_was(is_training):
    system = make_system(dropout=0.5, word_dropout=0.5)
    expected = system.candidates(TOKENS, 16)
    system.network.train(is_training)
    assert_same_candidates(system.candidates(TOKENS, 16), expected)
    assert system.network.training == is_training


# The order-free system: exact sums of the best sets, in parts of any size.


SOME_SETS = np.array(
    [[[-1, -1, -1], [0, -1, -1], [1, 3, -1], [0, 2, 3], [1, 2, 3]]] * len(TEXTS), dtype=np.int32
)


@pytest.mark.parametrize("beam_width", [1, 2, 4])
def test_the_best_sets_have_their_exact_probability(beam_width):
    system = make_system("order-free", beam_width=beam_width)
    truth = set_log_probs(system.network.decoder, system.network.encode(batch_of()))
    found = system.candidates(TOKENS, 1)
    for document in range(len(TEXTS)):
        best = list(found_sets(found, document).items())[: system.config.search.exact_sets]
        for labels, prob in best:
            expected = float(truth[frozenset(labels)][document].exp())
            assert prob == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("max_subsets", "max_memory"), [(1, 2**26), (9, 2**26), (65_536, 1)])
def test_how_sets_are_parted_changes_nothing(max_subsets, max_memory, monkeypatch):
    system = make_system("order-free", beam_width=4)
    whole = system.set_log_probs(TOKENS, SOME_SETS)
    monkeypatch.setattr(recurrent, "MAX_SUBSETS", max_subsets)
    monkeypatch.setattr(recurrent, "MAX_MEMORY", max_memory)
    np.testing.assert_allclose(system.set_log_probs(TOKENS, SOME_SETS), whole, rtol=1e-5)


def test_more_labels_than_can_be_summed_have_no_probability():
    system = replace(
        make_system("order-free", beam_width=2), network=tiny_network("order-free", n_labels=70)
    )
    sets = np.full((len(TEXTS), 2, 70), -1, dtype=np.int32)
    sets[:, 0] = np.arange(70)
    sets[:, 1, :62] = np.arange(62)
    found = system.set_log_probs(TOKENS, sets)
    assert (found[:, 0] == -np.inf).all()
    assert np.isfinite(found[:, 1]).all()
