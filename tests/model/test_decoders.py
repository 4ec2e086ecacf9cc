"""Every decoder keeps the protocol's promises; brute force over all sequences of 4 labels."""

import pytest
import torch
from torch import nn

from brute_force_sequences import (
    EVERY_DECODER,
    TEXTS,
    batch_of,
    encoded,
    sequence_log_probs,
    tiny_network,
)
from setrnn.checks import check_decoder
from setrnn.model.decoders import DECODERS
from setrnn.model.dropout import draw_from

# The choices of the paper that the defaults differ from.
PAPER = {"attention": "additive", "label_output": False, "stop_vector": True, "evidence": False}


def step_through(decoder, encoding, sequence):
    """The log-probabilities (B, V) of each step of one sequence, and of its STOP's."""
    B = len(encoding.memory)
    state, previous = decoder.start(encoding), torch.full((B, 1), decoder.n_labels)
    found = []
    for label in (*sequence, None):
        log_probs, state = decoder.step(encoding, state, previous)
        found.append(log_probs[:, 0])
        if label is not None:
            previous = torch.full((B, 1), label)
    return found


@pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)
def test_every_decoder_keeps_its_promises(decoder):
    check_decoder(decoder)


@EVERY_DECODER
@pytest.mark.parametrize("settings", [{}, {"decoder_layers": 2}, {"encoder_layers": 2, **PAPER}])
def test_probabilities_of_all_sequences_sum_to_one(decoder, settings):
    scores = sequence_log_probs(*encoded(decoder, **settings))
    assert len(scores) == 65
    total = torch.stack(list(scores.values())).exp().sum(0)
    torch.testing.assert_close(total, torch.ones(len(TEXTS)))


@EVERY_DECODER
@pytest.mark.parametrize("trains", [False, True])
def test_sequences_of_different_lengths_are_followed_as_they_are_stepped(decoder, trains):
    decoder, encoding = encoded(decoder)
    if trains:  # on a CPU, where prefixes are shared
        draw_from(torch.Generator(), decoder.train())
    sequences = [(2, 0, 1), (), (3,), (1, 3)][: len(TEXTS)]
    labels = torch.full((len(TEXTS), 3), -1)
    for row, sequence in enumerate(sequences):
        labels[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.long)
    lengths = torch.tensor([len(each) for each in sequences])
    for known in (None, lengths):
        log_probs = decoder.follow(encoding, labels, known)
        for row, sequence in enumerate(sequences):
            stepped = torch.stack(step_through(decoder, encoding, sequence))[:, row]
            torch.testing.assert_close(log_probs[row, : len(stepped)], stepped)


@EVERY_DECODER
def test_dropout_is_for_training_only(decoder):
    decoder, encoding = encoded(decoder, dropout=0.5)
    orders = torch.tensor([[2, 0, 1]]).expand(len(TEXTS), -1, -1)
    torch.testing.assert_close(decoder.score(encoding, orders), decoder.score(encoding, orders))
    decoder.train()
    assert (decoder.score(encoding, orders) != decoder.score(encoding, orders)).any()


@EVERY_DECODER
@pytest.mark.parametrize("layers", [1, 2])
def test_a_generator_for_dropout_changes_only_the_noise(decoder, layers):
    network = tiny_network(decoder, decoder_layers=layers, dropout=0.0, word_dropout=0.0).train()
    orders = torch.tensor([[2, 0, 1], [2, 1, 0], [0, 3, -1], [-1, -1, -1]])
    orders = orders.expand(len(TEXTS), -1, -1)
    found = []
    for generator in (None, torch.Generator()):
        draw_from(generator, network)
        network.zero_grad()
        scores = network.decoder.score(network.encode(batch_of(TEXTS)), orders)
        scores.logsumexp(1).sum().backward()
        found.append([scores.detach(), *(each.grad for each in network.parameters())])
    torch.testing.assert_close(*found)


class ClosedGate(nn.Module):
    def forward(self, vectors):
        return torch.full_like(vectors[..., : vectors.shape[-1] // 2], -torch.inf)


def test_sgm_with_a_closed_gate_is_the_rnn_decoder():
    sgm, rnn = tiny_network("sgm"), tiny_network("rnn")
    weights = sgm.state_dict()
    del weights["decoder.gate.weight"]
    rnn.load_state_dict(weights)
    sgm.decoder.gate = ClosedGate()
    batch = batch_of()
    found = sequence_log_probs(sgm.decoder, sgm.encode(batch))
    expected = sequence_log_probs(rnn.decoder, rnn.encode(batch))
    for sequence, log_prob in expected.items():
        torch.testing.assert_close(found[sequence], log_prob)


class NotedGate(nn.Module):
    """The gate of a decoder, with what it was given."""

    def __init__(self, gate):
        super().__init__()
        self.gate, self.seen = gate, []

    def forward(self, vectors):
        self.seen.append(vectors)
        return self.gate(vectors)


def test_sgm_sees_all_labels_by_the_probability_they_had():
    """Its e' is the mean of the label vectors under the step before; e is the chosen label's."""
    decoder, encoding = encoded("sgm")
    decoder.gate = NotedGate(decoder.gate)
    sequence = (2, 0, 3)
    log_probs = step_through(decoder, encoding, sequence)
    vectors = decoder.labels.weight
    for step, label in enumerate(sequence, start=1):
        chosen, mean = decoder.gate.seen[step][:, 0].chunk(2, dim=1)
        torch.testing.assert_close(chosen, vectors[label].expand_as(chosen))
        torch.testing.assert_close(mean, log_probs[step - 1].exp() @ vectors)
