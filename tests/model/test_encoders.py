"""Every encoder reads a document the same way, whatever stands beside or behind it.

Documents of several windows are read a window at a time, and remembered as one.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from brute_force_sequences import N_WORDS, TEXTS, batch_of
from setrnn import checks
from setrnn.config import EncoderSettings, ModelSettings, load_config
from setrnn.model.encoders import ENCODERS, GRUEncoder, gru
from setrnn.model.network import encode_windows
from tiny_transformers import save_transformer, tiny_transformer

EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS)
WINDOW = 4
LONG = [[3, 4, 5, 6, 7, 8, 9, 10, 11], [12, 3, 14, 5, 16], [6, 7, 8, 9], [10, 11], []]


def make_encoder(name="gru", **settings):
    torch.manual_seed(0)
    settings = {"encoder_units": 6, "dropout": 0.0, "word_dropout": 0.0} | settings
    source = tiny_transformer(N_WORDS) if name == "transformer" else torch.randn(N_WORDS, 4)
    return ENCODERS[name](source, ModelSettings(**settings)).eval()


def read(encoder, texts=TEXTS, window=None):
    batch = batch_of(texts)
    return encode_windows(encoder, batch.tokens, batch.lengths, window)


@EVERY_ENCODER
def test_every_encoder_keeps_its_promises(encoder, tmp_path):
    config = checks.CONFIG
    if encoder == "transformer":
        text = replace(config.text, tokenizer=str(save_transformer(tmp_path)), max_tokens=64)
        config = replace(config, text=text, encoder=EncoderSettings("transformer", text.tokenizer))
    checks.check_encoder(ENCODERS[encoder], config)


@EVERY_ENCODER
def test_padding_neighbours_and_their_order_change_nothing_in_windows(encoder):
    encoder, batch, window = make_encoder(encoder), batch_of(LONG), WINDOW
    T, expected = batch.tokens.shape[1], read(encoder, LONG, window)
    wider = encode_windows(encoder, pad(batch.tokens, (0, 5)), batch.lengths, window)
    torch.testing.assert_close(wider.memory[:, :T], expected.memory)
    torch.testing.assert_close(wider.summary, expected.summary)
    assert not wider.is_word[:, T:].any()
    turned = encode_windows(encoder, batch.tokens.flip(0), batch.lengths.flip(0), window)
    torch.testing.assert_close(turned.memory.flip(0), expected.memory)
    for row, text in enumerate(LONG):
        alone = read(encoder, [text], window)
        torch.testing.assert_close(alone.summary[0], expected.summary[row])
        n_words = alone.memory.shape[1]
        torch.testing.assert_close(alone.memory[0], expected.memory[row, :n_words])


@EVERY_ENCODER
def test_the_memory_of_a_document_is_that_of_its_windows(encoder):
    encoder = make_encoder(encoder)
    found = read(encoder, LONG, WINDOW)
    assert found.is_word.sum(1).tolist() == [9, 5, 4, 2, 1]
    for row, text in enumerate(LONG[:4]):
        windows = [text[start : start + WINDOW] for start in range(0, len(text), WINDOW)]
        alone = [read(encoder, [each]) for each in windows]
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
def test_words_and_their_order_matter(encoder):
    encoder = make_encoder(encoder)
    summaries = read(encoder, [[3, 4, 5], [5, 4, 3], [3, 4, 6]]).summary
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (summaries[one] - summaries[other]).abs().max() > 1e-3


@EVERY_ENCODER
@pytest.mark.parametrize("setting", ["dropout", "word_dropout"])
def test_dropout_is_for_training_only(encoder, setting):
    encoder = make_encoder(encoder, **{setting: 0.5})
    torch.testing.assert_close(read(encoder).memory, read(encoder).memory)
    encoder.train()
    assert (read(encoder).memory != read(encoder).memory).any()


def test_word_dropout_makes_words_unknown_and_leaves_padding():
    encoder = make_encoder(word_dropout=0.999999)
    unknown = read(encoder, [[1] * len(text) for text in TEXTS])
    encoder.train()
    dropped = read(encoder)
    torch.testing.assert_close(dropped.memory, unknown.memory)
    torch.testing.assert_close(dropped.summary, unknown.summary)


@EVERY_ENCODER
@pytest.mark.parametrize(("word_vectors", "is_tuned"), [("tuned", True), ("frozen", False)])
def test_word_vectors_learn_only_if_tuned(encoder, word_vectors, is_tuned):
    encoder = make_encoder(encoder, word_vectors=word_vectors)
    read(encoder).summary.sum().backward()
    learned = [each for each in encoder.parameters() if each.grad is not None]
    assert any(len(each) == N_WORDS for each in learned) == is_tuned
    assert learned, "the rest always learns"


def packed_reading(encoder, batch):
    """What torch's own bidirectional GRU says of packed rows."""
    n_layers = len(encoder.layers)
    gru = nn.GRU(4, encoder.memory_size // 2, n_layers, batch_first=True, bidirectional=True)
    for number, layer in enumerate(encoder.layers):
        for direction, weights in (("", layer.rightward), ("_reverse", layer.leftward)):
            for name, weight in weights.named_parameters():
                place = name.replace("_l0", f"_l{number}") + direction
                delattr(gru, place)
                setattr(gru, place, weight)
    packed = pack_padded_sequence(
        encoder.words(batch.tokens), batch.lengths, batch_first=True, enforce_sorted=False
    )
    output, last = gru(packed)
    memory, _ = pad_packed_sequence(output, batch_first=True)
    return memory, torch.cat((last[-2], last[-1]), dim=-1)


def gradients(encoder, memory, summary):
    """The gradient of a random mix of all that was read."""
    random = torch.Generator().manual_seed(1)
    weights = [torch.randn(each.shape, generator=random) for each in (memory, summary)]
    value = (memory * weights[0]).sum() + (summary * weights[1]).sum()
    return torch.autograd.grad(value, list(encoder.parameters()))


@pytest.mark.parametrize(
    "texts",
    [TEXTS, TEXTS[::-1], [[3]], [[]], [[5, 6, 7], [8, 9, 10]], [[4], list(range(2, 19)), []]],
    ids=["mixed", "rising", "one word", "empty", "alike", "long and short"],
)
@pytest.mark.parametrize("n_layers", [1, 2])
def test_turned_rows_are_read_as_torch_reads_packed_ones(texts, n_layers):
    encoder, batch = make_encoder(encoder_layers=n_layers), batch_of(texts)
    assert isinstance(encoder, GRUEncoder)
    encoding = read(encoder, texts)
    memory, summary = packed_reading(encoder, batch)
    torch.testing.assert_close(encoding.memory, memory)
    torch.testing.assert_close(encoding.summary, summary)
    found = gradients(encoder, encoding.memory, encoding.summary)
    for one, other in zip(found, gradients(encoder, memory, summary), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_vectors_are_scaled_and_told_apart(small_prepared, monkeypatch, is_frozen):
    """Those of few texts are all alike; the scale 0 keeps them as they are."""
    n_rows = small_prepared.encoder.n_tokens + len(small_prepared.labels)
    alike = np.full((n_rows, 50), 3.0, dtype=np.float32) + np.eye(n_rows, 50, dtype=np.float32)
    monkeypatch.setattr(gru, "word_vectors", lambda *_: alike)
    kind = f"model.word_vectors={'frozen' if is_frozen else 'tuned'}"
    for scale in (0.0, 0.1):
        config = load_config(overrides=[kind, f"model.word_scale={scale}"])
        encoder, labels = GRUEncoder.from_data(small_prepared, config, lambda *_: None)
        words = encoder.words.weight.detach()
        assert encoder.words.weight.requires_grad != is_frozen
        assert (len(words), len(labels)) == (small_prepared.encoder.n_tokens, n_rows - len(words))
        if scale:
            assert not words[0].any()
            assert torch.corrcoef(words[1:50]).triu(1).abs().max() < 0.9
        else:
            assert torch.equal(torch.cat((words, labels)), torch.from_numpy(alike))
