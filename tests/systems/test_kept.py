"""Documents that are read once for the search and for all scores that follow."""

import numpy as np
import pytest

from setrnn.data.ragged import Ragged
from setrnn.systems import kept
from setrnn.systems.kept import KeptTokens
from setrnn.systems.rules import MANY_SETS


@pytest.fixture
def rows(small_prepared):
    return small_prepared.split("test").tokens.rows(0, 20)


@pytest.mark.parametrize("method", ["set-rnn", "set-rnn-exact", "sigmoid"])
def test_kept_documents_are_encoded_once_and_scored_as_before(method, taggers, rows, monkeypatch):
    system = taggers[method].system
    sets = system.candidates(rows, MANY_SETS).labels
    wanted = system.set_log_probs(rows, sets)
    read, encode = [], type(system.network).encode

    def count(network, batch):
        read.extend(batch.rows)
        return encode(network, batch)

    monkeypatch.setattr(type(system.network), "encode", count)
    tokens, some = KeptTokens.of(rows), np.arange(len(rows))[::-2]
    system.candidates(tokens, MANY_SETS)
    found = [
        system.set_log_probs(tokens, sets),
        system.set_log_probs(tokens.take(some), sets[some]),
    ]
    assert sorted(read) == list(range(len(rows)))
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], wanted[some], rtol=1e-5, atol=1e-5)


def test_without_room_documents_are_read_again(taggers, rows, monkeypatch):
    monkeypatch.setattr(kept, "MAX_BYTES", 0)
    system, tokens = taggers["set-rnn"].system, KeptTokens.of(rows)
    sets = system.candidates(tokens, MANY_SETS).labels
    assert not tokens.kept
    found, wanted = (system.set_log_probs(each, sets) for each in (tokens, rows))
    np.testing.assert_array_equal(found, wanted)


def test_a_repeated_document_keeps_nothing():
    tokens = KeptTokens.of(Ragged.from_lists([[1], [2, 3]]))
    assert isinstance(tokens.take(np.array([1, 0])), KeptTokens)
    assert not isinstance(tokens.take(np.array([1, 1])), KeptTokens)
