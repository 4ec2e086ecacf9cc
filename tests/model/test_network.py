"""An encoder and a decoder together; brute force over all sets of 4 labels."""

import pytest
import torch

from brute_force_sequences import (
    batch_of,
    network_of,
)
from setrnn.config import Config, EncoderSettings, ModelSettings
from setrnn.errors import ConfigError
from setrnn.model.decoders import DECODERS, find_decoder
from setrnn.model.encoders import GRUEncoder, TransformerEncoder, find_encoder
from setrnn.model.network import Network, rebuild_network
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


def test_an_unknown_encoder_or_decoder_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"encoder.name.*'transfomer'.*'transformer'"):
        find_encoder("transfomer")
    with pytest.raises(ConfigError, match=r"decoder 'order-fre'.*'order-free'"):
        find_decoder("order-fre")
