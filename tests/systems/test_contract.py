"""What every system promises, on four labels: one test over all kinds of METHODS."""

from functools import cache, partial

import numpy as np
import pytest
import torch
from test_recurrent import make_system

from brute_force import all_sets, found_sets
from brute_force_sequences import TEXTS
from setrnn.checks import check_system
from setrnn.config import ClassicalSettings, Config, TextSettings
from setrnn.data.cache import prepare
from setrnn.data.ragged import Ragged
from setrnn.methods import METHODS
from setrnn.systems import neural
from setrnn.systems.known import Known
from setrnn.systems.mixture import MixtureSystem, Weights
from setrnn.systems.products import NEVER
from setrnn.systems.registry import find_system
from tiny import TINY

N_LABELS = 4
SETS = Ragged.from_lists(all_sets(N_LABELS)).padded()
TOKENS = Ragged.from_lists(TEXTS)
KNOWN = Known.of([(1, 3), (), (2,), ()], [(0,), (), (), (2, 0)])
# One method per system: those that share a decoder, and so a system, differ in training alone.
KINDS = {method.decoder if method.is_network else name: name for name, method in METHODS.items()}
EVERY_KIND = pytest.mark.parametrize("name", KINDS.values())


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Return a function that makes the system of a method, once."""
    corpus = next(each for each in TINY.values() if len(each.labels) == N_LABELS)
    examples = corpus.sample(200, seed=1)
    text = TextSettings(min_count=1, stop_words="none")
    folder = tmp_path_factory.mktemp("tiny")
    prepared = prepare({"train": partial(iter, examples)}, folder, "tiny", text, {})
    config = Config(classical=ClassicalSettings(max_steps=20, beam_width=2**N_LABELS))

    @cache
    def make(name):
        method = METHODS[name]
        if method.is_mixture:
            members = (make("sigmoid"), make("set-rnn"))
            return MixtureSystem(members, (0, 0), Weights(np.array([0.3, 0.7]), {}), N_LABELS)
        if method.is_network:
            return make_system(method.decoder)
        return find_system(method).train(prepared, config)

    return make


def every_set(n):
    return np.broadcast_to(SETS, (n, *SETS.shape))


def assert_same(found, expected, rows=None):
    rows = np.arange(len(expected)) if rows is None else rows
    for place, document in enumerate(rows):
        is_found = expected.log_probs[document] > -np.inf
        for rank in np.flatnonzero(is_found):
            assert found.set_at(place, rank) == expected.set_at(document, rank)
        probs = [np.exp(found.log_probs[place]), np.exp(expected.log_probs[document])]
        np.testing.assert_allclose(*(each[: is_found.sum()] for each in probs), atol=1e-5)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_system_keeps_its_promises(method):
    check_system(method)


@EVERY_KIND
def test_how_documents_are_parted_changes_nothing(make, name, monkeypatch):
    system = make(name)
    scores = system.set_log_probs(TOKENS, every_set(len(TOKENS)))
    for known in (None, KNOWN):
        together = system.candidates(TOKENS, 6, known=known)
        order = np.array([2, 0, 3, 1, 0])
        of_order = None if known is None else known.take(order)
        shuffled = system.candidates(TOKENS.take(order), 6, known=of_order)
        assert_same(shuffled, together, order)
        monkeypatch.setattr(neural, "MAX_DOCUMENTS_ON_CPU", 1)
        monkeypatch.setattr(neural, "MAX_WORDS", 6)
        assert_same(system.candidates(TOKENS, 6, known=known), together)
        again = system.set_log_probs(TOKENS, every_set(len(TOKENS)))
        np.testing.assert_allclose(np.exp(again), np.exp(scores), atol=1e-5)
        monkeypatch.undo()


@EVERY_KIND
@pytest.mark.parametrize("beam_width", [3, 200])
def test_marginals_agree_with_the_sets_found(make, name, beam_width):
    """p(label) is at least that of the sets found with it, and leaves room for those without."""
    system = make(name).with_beam_width(beam_width) or make(name)
    for source in ("sets", "sequences") if system.emits_sequences else ("sets",):
        candidates = system.candidates(TOKENS, len(SETS), source)
        marginals = system.marginals(TOKENS, candidates)
        np.testing.assert_array_equal(candidates.marginals(N_LABELS), marginals)
        for document, of_document in enumerate(marginals):
            found = found_sets(candidates, document)
            for label, marginal in enumerate(of_document):
                assert marginal >= sum(p for each, p in found.items() if label in each) - 1e-5
                if name != "br-support":  # where br says more, its probability is taken
                    without = sum(p for each, p in found.items() if label not in each)
                    assert marginal <= 1 - without + 1e-5


@pytest.mark.parametrize("name", ["br", "sigmoid"])
def test_where_every_document_has_a_label_no_set_is_empty(make, name):
    never_empty = make(name).with_empty_shift(NEVER)
    found = never_empty.candidates(TOKENS, len(SETS) - 1)
    assert (found.labels >= 0).any(axis=2).all()
    np.testing.assert_allclose(np.exp(found.log_probs).sum(axis=1), 1, rtol=1e-6)
    everything_absent = Known.of([()] * len(TOKENS), [range(N_LABELS)] * len(TOKENS))
    none_left = never_empty.candidates(TOKENS, 2, known=everything_absent)
    assert (none_left.log_probs == -np.inf).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", [name for name in KINDS.values() if METHODS[name].is_network])
def test_the_device_changes_nothing(make, name):
    system = make(name)
    on_gpu = type(system).from_arrays(system.arrays(), METHODS[name], system.config, "cuda")
    expected, found = (
        each.set_log_probs(TOKENS, every_set(len(TOKENS))) for each in (system, on_gpu)
    )
    np.testing.assert_allclose(found, expected, atol=0.02)  # TF32
