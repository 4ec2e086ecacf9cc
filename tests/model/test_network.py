"""An encoder and a decoder together, rebuilt from their weights, or refused by their names."""

from dataclasses import replace

import pytest
import torch

from brute_force_sequences import batch_of, network_of, tiny_network
from setrnn.config import Config, EncoderSettings, ModelSettings, TextSettings, load_config
from setrnn.errors import ConfigError
from setrnn.methods import METHODS
from setrnn.model.decoders import DECODERS, find_decoder
from setrnn.model.encoders import ENCODERS, GRUEncoder, TransformerEncoder, find_encoder
from setrnn.model.network import Network, find_window, rebuild_network
from setrnn.tagging.tagger import load
from setrnn.training.start import check_method
from small_taggers import SMALL_OVERRIDES, trained_tagger
from tiny_transformers import tiny_transformer


def test_a_document_begins_with_about_one_label():
    network = network_of(torch.zeros(9, 4), torch.zeros(50, 4), ModelSettings(), "sigmoid")
    logits = network.decoder.logits(network.encode(batch_of([[3, 4]])))
    assert 0.5 < logits.sigmoid().sum().item() < 2


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_network_is_rebuilt_from_its_weights_and_config_alone(decoder):
    settings = ModelSettings(encoder_units=6, decoder_units=5)
    for encoder, name, path in (
        (GRUEncoder(torch.randn(20, 4), settings), "gru", ""),
        (TransformerEncoder(tiny_transformer(20), settings), "transformer", "gone"),
    ):
        labels = torch.randn(4, 4)
        own = DECODERS[decoder](encoder.memory_size, labels, settings)
        network = Network(encoder, own).eval()
        config = Config(model=settings, encoder=EncoderSettings(name, path))
        again = rebuild_network(network.state_dict(), config, decoder)
        assert again.state_dict().keys() == network.state_dict().keys()
        assert not any(each.is_meta for each in (*again.parameters(), *again.buffers()))
        found, expected = again.encode(batch_of()), network.encode(batch_of())
        assert torch.equal(found.memory, expected.memory)
        assert torch.equal(found.summary, expected.summary)


def test_rebuilding_draws_no_random_numbers_and_keeps_no_path():
    settings = ModelSettings()
    encoder = TransformerEncoder(tiny_transformer(20), settings)
    network = Network(encoder, DECODERS["rnn"](encoder.memory_size, torch.randn(4, 4), settings))
    before = torch.get_rng_state()
    rebuild_network(network.state_dict(), Config(encoder=EncoderSettings("transformer", "gone")))
    assert torch.equal(torch.get_rng_state(), before)
    assert b"_name_or_path" not in network.encoder.architecture.numpy().tobytes()


@pytest.mark.parametrize("decoder", ["rnn", "order-free", "sigmoid"])
def test_a_rebuilt_network_reads_the_same_windows(decoder):
    network = tiny_network(decoder)
    network.window = 4
    settings = ModelSettings(encoder_units=6, decoder_units=5, dropout=0.0)
    config = Config(model=settings, text=TextSettings(max_words=4, windows=3))
    again = rebuild_network(network.state_dict(), config, decoder)
    batch = batch_of([[3, 4, 5, 6, 7, 8, 9, 10, 11], [12, 3, 14, 5, 16], []])
    found, expected = again.encode(batch), network.encode(batch)
    torch.testing.assert_close(found.evidence, expected.evidence)
    torch.testing.assert_close(found.memory, expected.memory)
    whole = rebuild_network(network.state_dict(), replace(config, text=TextSettings()), decoder)
    assert (whole.encode(batch).memory[0] - found.memory[0]).abs().max() > 1e-3


def test_a_setting_of_one_window_means_no_windows():
    assert find_window(TextSettings()) is None
    assert find_window(TextSettings(max_words=7, windows=2)) == 7
    assert find_window(TextSettings(max_tokens=9, windows=2, tokenizer="folder")) == 9


def test_an_unknown_encoder_or_decoder_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"encoder.name.*'transfomer'.*'transformer'"):
        find_encoder("transfomer")
    with pytest.raises(ConfigError, match=r"decoder 'order-fre'.*'order-free'"):
        find_decoder("order-fre")


# An encoder from outside the package; `test_extensions.py` trains with one.


class ToyEncoder(GRUEncoder):
    """An encoder that refuses some settings."""

    @classmethod
    def check(cls, config):
        if config.model.encoder_units > 1_000:
            raise ConfigError("too many units")


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setitem(ENCODERS, "toy", ToyEncoder)


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
