"""Label evidence: the formula word by word, and what decoders make of it."""

from dataclasses import replace

import pytest
import torch

from brute_force_sequences import (
    STEPPING_DECODERS,
    TEXTS,
    batch_of,
    sequence_log_probs,
    tiny_network,
)
from setrnn.model import evidence as evidence_module


def test_each_label_attends_to_the_words_by_itself():
    network = tiny_network("sigmoid")
    encoding, evidence = network.encode(batch_of()), network.evidence
    for document in range(len(TEXTS)):
        words = encoding.words[document][encoding.is_word[document]]
        for label in range(4):
            attention = (words @ evidence.query.weight[label]).softmax(0)
            values = words @ evidence.value.weight[label]
            expected = attention @ values + evidence.value.bias[label]
            torch.testing.assert_close(encoding.evidence[document, label], expected)
    assert not encoding.evidence[:, 4].any(), "STOP has no evidence"


def test_the_words_add_up_to_the_evidence():
    network = tiny_network("sigmoid")
    encoding = network.encode(batch_of())
    by_word = network.evidence.by_word(encoding)
    total = by_word.sum(1) + network.evidence.value.bias
    torch.testing.assert_close(total, encoding.evidence[:, :-1])
    assert not by_word[~encoding.is_word].any(), "padding says nothing"


def test_how_many_documents_are_computed_at_once_changes_nothing(monkeypatch):
    network = tiny_network("sigmoid")
    expected = network.encode(batch_of()).evidence
    monkeypatch.setattr(evidence_module, "MAX_SCORES", 1)
    torch.testing.assert_close(network.encode(batch_of()).evidence, expected)


@pytest.mark.parametrize("decoder", STEPPING_DECODERS)
def test_much_evidence_for_a_label_makes_it_the_first(decoder):
    network = tiny_network(decoder)
    encoding = network.encode(batch_of())
    evidence = torch.zeros(len(TEXTS), 5)
    evidence[:, 2] = 30.0
    found = sequence_log_probs(network.decoder, replace(encoding, evidence=evidence))
    first = torch.stack([each for order, each in found.items() if order[:1] == (2,)])
    torch.testing.assert_close(first.logsumexp(0).exp(), torch.ones(len(TEXTS)))
