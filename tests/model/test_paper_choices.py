"""The choices of the paper that the defaults differ from: each means what its name says."""

from dataclasses import replace

import pytest
import torch
from test_decoders import PAPER

from brute_force_sequences import (
    TEXTS,
    all_sequences,
    batch_of,
    encoded,
    sequence_log_probs,
    tiny_network,
)
from setrnn.config import ModelSettings
from setrnn.model.decoders import find_decoder

RECURRENT = pytest.mark.parametrize("decoder", ["rnn", "sgm"])


def test_additive_attention_is_that_of_the_formula():
    decoder, encoding = encoded(attention="additive")
    hidden = torch.randn(len(TEXTS), 2, 5)
    found = decoder._attention(encoding, decoder.query(hidden))
    for document, memory in enumerate(encoding.memory):
        n_words = int(encoding.is_word[document].sum())
        for row in range(2):
            scores = [
                decoder.align.score.weight[0]
                @ (
                    decoder.query.weight @ hidden[document, row]
                    + decoder.align.key.weight @ word
                    + decoder.align.key.bias
                ).tanh()
                for word in memory[:n_words]
            ]
            expected = torch.stack(scores).softmax(0)
            torch.testing.assert_close(found[document, row, :n_words], expected)
            assert (found[document, row, n_words:] == 0).all()


def test_additive_attention_in_parts_is_the_same(monkeypatch):
    found = []
    for most in (2**25, 100):
        monkeypatch.setattr("setrnn.model.decoders.rnn.MOST_FEATURES", most)
        network = tiny_network(attention="additive")
        orders = torch.tensor([[2, 0, 1], [0, 3, -1]]).expand(len(TEXTS), -1, -1)
        scores = network.decoder.score(network.encode(batch_of(TEXTS)), orders)
        scores.sum().backward()
        found.append([scores.detach(), *(each.grad for each in network.parameters())])
    torch.testing.assert_close(*found)


@RECURRENT
def test_repeats_take_probability_from_all_that_is_left(decoder):
    masked, encoding = encoded(decoder)
    allowed, _ = encoded(decoder, repeats=True)
    scores = sequence_log_probs(allowed, encoding)
    total = torch.stack(list(scores.values())).exp().sum(0)
    assert (total < 1).all()
    if decoder == "sgm":  # it reads the probabilities of the step before
        return
    before = sequence_log_probs(masked, encoding)
    for sequence in all_sequences(4):
        if not sequence:
            torch.testing.assert_close(scores[sequence], before[sequence])
        if sequence:
            assert (scores[sequence] < before[sequence]).all()


def test_without_the_output_term_label_vectors_are_only_read():
    decoder, encoding = encoded(label_output=False)
    before = sequence_log_probs(decoder, encoding)[()]
    with torch.no_grad():
        decoder.labels.weight[:-1] += 1.0
    torch.testing.assert_close(sequence_log_probs(decoder, encoding)[()], before)
    decoder, encoding = encoded()
    before = sequence_log_probs(decoder, encoding)[()]
    with torch.no_grad():
        decoder.labels.weight[:-1] += 1.0
    assert (sequence_log_probs(decoder, encoding)[()] != before).any()


def test_a_vector_of_its_own_scores_stop_and_starts_nothing():
    decoder, encoding = encoded(stop_vector=True)
    state, nothing = decoder.start(encoding), torch.full((len(TEXTS), 1), 4)
    before, after = decoder.step(encoding, state, nothing)
    with torch.no_grad():
        decoder.stop += 1.0
    found, after_too = decoder.step(encoding, state, nothing)
    torch.testing.assert_close(after, after_too)  # the recurrence has not read it
    assert (found[..., 4] != before[..., 4]).all()
    odds = [each[..., 0] - each[..., 1] for each in (before, found)]
    torch.testing.assert_close(*odds)


@torch.no_grad()
@pytest.mark.parametrize("settings", [{}, PAPER, {"stop_vector": True}, {"repeats": True}])
def test_searches_on_a_cpu_agree_with_the_steps(settings):
    decoder, encoding = encoded(**settings)
    B = len(TEXTS)
    state, previous = decoder.start(encoding), torch.full((B, 1), 4)
    documents = torch.arange(B)
    rows = tuple(each[:, 0] for each in state)
    for label in (4, 2, 0):
        previous = torch.full((B, 1), label)
        found, state = decoder.step(encoding, state, previous)
        others, rows = decoder.step_rows(encoding, documents, rows, documents, previous[:, 0])
        torch.testing.assert_close(found[:, 0], others)


def test_the_recurrence_reads_the_context_where_it_is_an_input():
    plain, encoding = encoded("rnn")
    feeding, _ = encoded("feeding")
    orders = torch.tensor([[2, 0, 1]]).expand(len(TEXTS), -1, -1)
    other = replace(encoding, memory=encoding.memory.flip(2))
    for decoder, reads in ((plain, False), (feeding, True)):
        state = decoder.start(encoding)
        found = [decoder.step(each, state, orders[:, :, 0])[1][0] for each in (encoding, other)]
        assert torch.equal(*found) is not reads


def test_a_context_without_weights_leaves_the_recurrence_as_it_is():
    feeding, plain = tiny_network("feeding"), tiny_network("rnn")
    weights = feeding.state_dict()
    name, size = "decoder.gru.weight_ih_l0", plain.decoder.gru.input_size
    weights[name] = torch.cat([weights[name][:, :size], 0 * weights[name][:, size:]], dim=1)
    feeding.load_state_dict(weights)
    plain.load_state_dict(weights | {name: weights[name][:, :size]})
    batch = batch_of(TEXTS)
    states = []
    for network in (feeding, plain):
        encoding = network.encode(batch)
        state = network.decoder.start(encoding)
        states.append(network.decoder.step(encoding, state, torch.full((len(TEXTS), 1), 2))[1][0])
    torch.testing.assert_close(*states)


def test_the_setting_gives_the_decoder_its_recurrence():
    assert find_decoder("rnn", ModelSettings(context_input=True)).reads_context
    assert not find_decoder("rnn", ModelSettings()).reads_context
