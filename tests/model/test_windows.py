"""Documents of several windows: read a window at a time, remembered as one."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import pad

from brute_force_sequences import N_WORDS, batch_of, tiny_network
from setrnn.config import Config, ModelSettings, TextSettings
from setrnn.model.encoders import ENCODERS
from setrnn.model.network import rebuild_network
from setrnn.model.windows import encode_windows, find_window
from tiny_transformers import tiny_transformer

EVERY_ENCODER = pytest.mark.parametrize("name", ENCODERS)
WINDOW = 4
TEXTS = [[3, 4, 5, 6, 7, 8, 9, 10, 11], [12, 3, 14, 5, 16], [6, 7, 8, 9], [10, 11], []]


def make_encoder(name):
    torch.manual_seed(0)
    settings = ModelSettings(encoder_units=6, dropout=0.0, word_dropout=0.0)
    source = tiny_transformer(N_WORDS) if name == "transformer" else torch.randn(N_WORDS, 4)
    return ENCODERS[name](source, settings).eval()


def read(encoder, texts=TEXTS, window=WINDOW):
    batch = batch_of(texts)
    return encode_windows(encoder, batch.tokens, batch.lengths, window)


@EVERY_ENCODER
def test_documents_of_one_window_are_read_as_ever_bit_by_bit(name):
    encoder, short = make_encoder(name), TEXTS[2:]
    for window in (None, WINDOW):
        found, expected = read(encoder, short, window), encoder(*tensors(short))
        for part in ("memory", "closed", "summary"):
            assert torch.equal(getattr(found, part), getattr(expected, part))


@EVERY_ENCODER
def test_the_memory_of_a_document_is_that_of_its_windows(name):
    encoder = make_encoder(name)
    found = read(encoder)
    assert found.is_word.sum(1).tolist() == [9, 5, 4, 2, 1]
    for row, text in enumerate(TEXTS[:4]):
        windows = [text[start : start + WINDOW] for start in range(0, len(text), WINDOW)]
        alone = [encoder(*tensors([each])) for each in windows]
        memory = torch.cat([each.memory[0] for each in alone])
        torch.testing.assert_close(found.memory[row, : len(text)], memory)
        words = torch.cat([each.words[0] for each in alone])
        torch.testing.assert_close(found.words[row, : len(text)], words)
        summary = sum(
            each.summary[0] * len(own) for each, own in zip(alone, windows, strict=True)
        ) / len(text)
        torch.testing.assert_close(found.summary[row], summary)
        assert not found.memory[row, len(text) :].any()


@EVERY_ENCODER
def test_padding_neighbours_and_their_order_change_nothing(name):
    encoder, (tokens, lengths) = make_encoder(name), tensors(TEXTS)
    expected = read(encoder)
    wider = encode_windows(encoder, pad(tokens, (0, 5)), lengths, WINDOW)
    torch.testing.assert_close(wider.memory[:, : tokens.shape[1]], expected.memory)
    torch.testing.assert_close(wider.summary, expected.summary)
    assert not wider.is_word[:, tokens.shape[1] :].any()
    turned = encode_windows(encoder, tokens.flip(0), lengths.flip(0), WINDOW)
    torch.testing.assert_close(turned.memory.flip(0), expected.memory)
    for row, text in enumerate(TEXTS):
        alone = read(encoder, [text])
        torch.testing.assert_close(alone.summary[0], expected.summary[row])
        n_words = alone.memory.shape[1]
        torch.testing.assert_close(alone.memory[0], expected.memory[row, :n_words])


@pytest.mark.parametrize("decoder", ["rnn", "order-free", "sigmoid"])
def test_a_rebuilt_network_reads_the_same_windows(decoder):
    network = tiny_network(decoder)
    network.window = WINDOW
    settings = ModelSettings(encoder_units=6, decoder_units=5, dropout=0.0)
    config = Config(model=settings, text=TextSettings(max_words=WINDOW, windows=3))
    again = rebuild_network(network.state_dict(), config, decoder)
    batch = batch_of(TEXTS)
    found, expected = again.encode(batch), network.encode(batch)
    torch.testing.assert_close(found.evidence, expected.evidence)
    torch.testing.assert_close(found.memory, expected.memory)
    whole = rebuild_network(network.state_dict(), replace(config, text=TextSettings()), decoder)
    assert (whole.encode(batch).memory[0] - found.memory[0]).abs().max() > 1e-3


def test_a_setting_of_one_window_means_no_windows():
    assert find_window(TextSettings()) is None
    assert find_window(TextSettings(max_words=7, windows=2)) == 7
    assert find_window(TextSettings(max_tokens=9, windows=2, tokenizer="folder")) == 9


def tensors(texts):
    batch = batch_of(texts)
    return batch.tokens, batch.lengths
