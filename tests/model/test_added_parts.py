"""One file and one line: an encoder and decoders from outside the package train, save and load."""

import numpy as np
import pytest
import torch
from torch import nn

from setrnn.config import load_config
from setrnn.errors import ConfigError
from setrnn.methods import METHODS, Method
from setrnn.model.decoders import DECODERS, RNNDecoder
from setrnn.model.encoders import ENCODERS
from setrnn.model.interfaces import Encoding
from setrnn.tagging.loading import load
from setrnn.training.start import check_method
from small_taggers import SMALL_OVERRIDES, trained_tagger

TEXTS = ["The match ended late.", "Rain delayed the final.", "Parliament passed the budget."]


class MeanEncoder(nn.Module):
    """The memory is an embedding of each word, the summary their mean."""

    def __init__(self, n_tokens, settings):
        super().__init__()
        self.n_tokens = n_tokens
        self.memory_size = self.word_size = settings.encoder_units
        self.words = nn.Embedding(n_tokens, self.memory_size)

    @classmethod
    def check(cls, config):
        if config.model.encoder_units > 1_000:
            raise ConfigError("too many units")

    @classmethod
    def from_data(cls, prepared, config, on_progress):
        encoder = cls(prepared.encoder.n_tokens, config.model)
        return encoder, torch.randn(len(prepared.labels), 8)

    @classmethod
    def from_weights(cls, weights, settings):
        return cls(len(weights["words.weight"]), settings)

    def forward(self, tokens, lengths):
        is_word = torch.arange(tokens.shape[1]) < lengths[:, None]
        memory = self.words(tokens) * is_word[..., None]
        closed = torch.zeros(tokens.shape).masked_fill(~is_word, -torch.inf)
        return Encoding(memory, closed, memory.sum(1) / lengths[:, None])


class MaxDecoder(nn.Module):
    """Each label by itself, from the word that speaks most for it; it reads no label vectors."""

    emits = "labels"

    def __init__(self, memory_size, label_vectors, settings):
        super().__init__()
        self.n_labels = len(label_vectors)
        self.evidence = nn.Linear(memory_size, self.n_labels)

    @classmethod
    def from_weights(cls, weights, memory_size, settings):
        return cls(memory_size, weights["evidence.bias"][:, None], settings)

    def logits(self, encoding):
        scores = self.evidence(encoding.memory) + encoding.closed[..., None]
        return scores.amax(1) - 2.0


class ShyDecoder(RNNDecoder):
    """The paper's decoder with half the attention; labels come one by one."""

    def _attention(self, encoding, query):
        return super()._attention(encoding, query / 2)


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setitem(ENCODERS, "toy", MeanEncoder)
    for name, decoder, objective, rule in (
        ("max", MaxDecoder, "independent-labels", "set"),
        ("shy", ShyDecoder, "set-probability", "sequence"),
    ):
        monkeypatch.setitem(DECODERS, name, decoder)
        words = ("maximise something", "argmax of something")
        method = Method(f"toy-{name}", *words, "#000000", objective, decoder=name, rule=rule)
        monkeypatch.setitem(METHODS, method.name, method)


@pytest.mark.parametrize("encoder", ["gru", "toy"])
@pytest.mark.parametrize("method", ["toy-max", "toy-shy", "set-rnn-exact"])
def test_a_part_from_outside_trains_saves_loads_and_predicts(
    added, encoder, method, small_prepared, tmp_path
):
    settings = [*SMALL_OVERRIDES, f"encoder.name={encoder}", "training.epochs=2"]
    config = load_config(overrides=settings)
    check_method(METHODS[method], config)
    tagger = trained_tagger(small_prepared, method, config)
    assert isinstance(tagger.system.network.encoder, ENCODERS[encoder])
    assert isinstance(tagger.system.network.decoder, DECODERS[METHODS[method].decoder])
    assert tagger.system.emits_sequences == (method != "toy-max")
    tagger.save(tmp_path / "model")
    again = load(tmp_path / "model", "cpu")
    assert again.tag(TEXTS, top=2) == tagger.tag(TEXTS, top=2)
    for name, array in tagger.system.arrays().items():
        np.testing.assert_array_equal(again.system.arrays()[name], array)


def test_an_encoder_refuses_its_settings_before_any_data_is_read(added):
    config = load_config(overrides=["encoder.name=toy", "model.encoder_units=2000"])
    with pytest.raises(ConfigError, match="too many units"):
        check_method(METHODS["set-rnn"], config)
    unknown = load_config(overrides=["encoder.name=toi"])
    with pytest.raises(ConfigError, match=r"encoder.name.*'toi'.*'toy'"):
        check_method(METHODS["set-rnn"], unknown)
    check_method(METHODS["br"], unknown)  # it has no encoder


def test_a_model_with_an_encoder_that_is_not_there_is_one_line(
    added, small_prepared, tmp_path, monkeypatch
):
    config = load_config(overrides=[*SMALL_OVERRIDES, "encoder.name=toy", "training.epochs=1"])
    trained_tagger(small_prepared, "sigmoid", config).save(tmp_path / "model")
    monkeypatch.delitem(ENCODERS, "toy")
    with pytest.raises(ConfigError, match=r"encoder.name.*'toy'") as error:
        load(tmp_path / "model", "cpu")
    assert "\n" not in str(error.value)
