"""What every system promises, on four labels: one test over all kinds of METHODS."""

from functools import cache, partial

import numpy as np
import pytest
import torch
from test_recurrent import make_system

from brute_force import all_sets
from brute_force_sequences import TEXTS
from setrnn.config import ClassicalSettings, Config, TextSettings
from setrnn.data.preparing import prepare
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError
from setrnn.methods import METHODS
from setrnn.systems import neural
from setrnn.systems.empty_set import NEVER
from setrnn.systems.known import Known
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.mixture_candidates import Weights
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


@EVERY_KIND
def test_the_probabilities_of_all_sets_sum_to_one_and_are_those_of_the_candidates(make, name):
    system = make(name)
    log_probs = system.set_log_probs(TOKENS, every_set(len(TOKENS)))
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1, atol=1e-4)
    found = system.candidates(TOKENS, len(SETS))
    given = system.set_log_probs(TOKENS, found.labels)
    is_found = found.log_probs > -np.inf
    np.testing.assert_allclose(found.log_probs[is_found], given[is_found], atol=1e-4)
    assert (np.diff(found.log_probs[:, :3]) <= 1e-9).all()  # best first


@EVERY_KIND
def test_batches_their_order_and_their_size_change_nothing(make, name, monkeypatch):
    system = make(name)
    for known in (None, KNOWN):
        together = system.candidates(TOKENS, 6, known=known)
        order = np.array([2, 0, 3, 1, 0])
        of_order = None if known is None else known.rows(order)
        shuffled = system.candidates(TOKENS.take(order), 6, known=of_order)
        assert_same(shuffled, together, order)
        monkeypatch.setattr(neural, "MAX_DOCUMENTS_ON_CPU", 1)
        monkeypatch.setattr(neural, "MAX_WORDS", 6)
        assert_same(system.candidates(TOKENS, 6, known=known), together)
        monkeypatch.undo()


@EVERY_KIND
def test_known_labels_only_exclude_sets(make, name):
    system = make(name)
    free = system.candidates(TOKENS, len(SETS))
    nothing = system.candidates(TOKENS, len(SETS), known=Known.nothing(len(TOKENS)))
    np.testing.assert_array_equal(nothing.labels, free.labels)
    found = system.candidates(TOKENS, len(SETS), known=KNOWN)
    present, absent = KNOWN.is_present(N_LABELS), KNOWN.is_absent(N_LABELS)
    for document in range(len(TOKENS)):
        for rank in np.flatnonzero(found.log_probs[document] > -np.inf):
            is_in = np.isin(np.arange(N_LABELS), found.set_at(document, rank))
            assert is_in[present[document]].all()
            assert not is_in[absent[document]].any()


@EVERY_KIND
def test_marginals_are_probabilities_for_any_number_of_documents(make, name):
    system = make(name)
    for tokens in (TOKENS, Ragged.from_lists([])):
        found = system.marginals(tokens)
        assert found.shape == (len(tokens), N_LABELS)
        assert ((found >= 0) & (found <= 1 + 1e-6)).all()
    assert len(system.candidates(Ragged.from_lists([]), 3)) == 0


@EVERY_KIND
def test_arrays_rebuild_the_same_system(make, name):
    system = make(name)
    if METHODS[name].is_mixture:
        pytest.skip("a mixture is saved member by member")
    config = getattr(system, "config", Config())
    again = type(system).from_arrays(system.arrays(), METHODS[name], config, "cpu")
    expected, found = system.candidates(TOKENS, 6), again.candidates(TOKENS, 6)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.log_probs, expected.log_probs)


@EVERY_KIND
def test_sequences_are_refused_where_there_are_none_and_never_completed(make, name):
    system = make(name)
    known = KNOWN if system.emits_sequences else None
    with pytest.raises(ConfigError, match=r"one by one|Use rule 'set'"):
        system.candidates(TOKENS, 1, "sequences", known)


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
