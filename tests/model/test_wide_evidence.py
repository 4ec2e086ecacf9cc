"""Wide evidence: the log-odds of BR, computed from the token ids of a batch."""

import numpy as np
import pytest
import torch

from brute_force_sequences import N_WORDS, batch_of, tiny_network
from setrnn.config import ClassicalSettings, Config, ModelSettings
from setrnn.data.ragged import Ragged
from setrnn.model.evidence import WideEvidence
from setrnn.model.network import rebuild_network
from setrnn.systems.classical.features import Tfidf
from setrnn.systems.classical.system import TrainingData, fit_linear
from setrnn.training.start import make_wide

N_LABELS = 4


@pytest.fixture(scope="module")
def documents():
    """Repeated words and pairs, special tokens, and an empty document."""
    random = np.random.default_rng(0)
    rows = [random.integers(0, N_WORDS, size=n).tolist() for n in random.integers(1, 30, size=80)]
    return Ragged.from_lists([*rows, [], [5, 6, 5, 6, 5, 6]])


@pytest.fixture(scope="module")
def fitted(documents):
    tfidf, features = Tfidf.fit(documents, N_WORDS, max_pairs=30)
    labels = Ragged.from_lists([sorted({t % 5 for t in row} - {4}) for row in documents])
    data = TrainingData(features, labels, N_LABELS, ClassicalSettings(max_steps=5))
    return tfidf, fit_linear(data)


def log_odds(wide, rows):
    batch = batch_of(rows)
    return wide.log_odds(batch.tokens, batch.lengths)


def test_the_log_odds_are_those_of_br(fitted, documents):
    tfidf, linear = fitted
    assert len(tfidf.pairs)
    expected = linear.logits(tfidf.transform(documents))
    found = log_odds(make_wide(tfidf, linear), list(documents))
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


def test_other_documents_of_the_batch_change_nothing(fitted, documents, monkeypatch):
    wide = make_wide(*fitted)
    together = log_odds(wide, list(documents))
    alone = torch.cat([log_odds(wide, [row]) for row in documents])
    torch.testing.assert_close(alone, together)
    monkeypatch.setattr("setrnn.model.evidence.MAX_PRODUCTS", 1)
    torch.testing.assert_close(log_odds(wide, list(documents)), together)


@pytest.mark.parametrize("decoder", ["rnn", "sgm", "order-free", "sigmoid"])
@pytest.mark.parametrize("evidence", [True, False])
def test_a_network_adds_it_to_the_evidence_and_keeps_it(fitted, documents, decoder, evidence):
    network = tiny_network(decoder, evidence=evidence)
    batch = batch_of(list(documents)[:5])
    before = network.encode(batch).evidence if evidence else 0
    network.wide = make_wide(*fitted)
    found = network.encode(batch).evidence
    added = network.wide.log_odds(batch.tokens, batch.lengths)
    torch.testing.assert_close(found - before, torch.nn.functional.pad(added, (0, 1)))
    settings = ModelSettings(encoder_units=6, decoder_units=5)
    again = rebuild_network(network.state_dict(), Config(model=settings), decoder)
    assert torch.equal(again.encode(batch).evidence, found)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", lambda labels: labels + 1),
        ("offsets", lambda offsets: offsets + 1),
        ("offsets", lambda offsets: offsets[:-1]),
        ("pairs", lambda pairs: pairs.flip(0)),
        ("weights", lambda weights: weights[1:]),
        ("weights", lambda weights: weights.double()),
        ("idf", lambda idf: idf[:, None]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(fitted, name, change):
    arrays = dict(make_wide(*fitted).named_buffers())
    with pytest.raises(ValueError, match="wide"):
        WideEvidence(arrays | {name: change(arrays[name])})
