"""An encoder and a decoder together; brute force over all sets of 4 labels."""

import pytest
import torch

from brute_force_sequences import (
    STEPPING_DECODERS,
    TEXTS,
    batch_of,
    network_of,
    sequence_log_probs,
    set_log_probs,
    tiny_network,
)
from setrnn.config import Config, EncoderSettings, ModelSettings
from setrnn.data.batches import make_batch
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError
from setrnn.model.decoders import DECODERS, find_decoder
from setrnn.model.encoders import GRUEncoder, TransformerEncoder, find_encoder
from setrnn.model.network import Network, rebuild_network
from tiny_transformers import tiny_transformer

EVERY_DECODER = pytest.mark.parametrize("decoder", STEPPING_DECODERS)


def set_table(network, batch):
    """log p of every set, by the row each document has in its split: (n, 16)."""
    found = torch.stack(list(set_log_probs(network.decoder, network.encode(batch)).values()), 1)
    return found[torch.from_numpy(batch.rows).argsort()]


@EVERY_DECODER
def test_what_else_is_in_the_batch_changes_no_set_probability(decoder):
    network = tiny_network(decoder)
    together = set_table(network, batch_of())
    alone = torch.cat([set_table(network, batch_of([text])) for text in TEXTS])
    torch.testing.assert_close(together, alone)


@EVERY_DECODER
def test_the_order_of_documents_changes_no_set_probability(decoder):
    network = tiny_network(decoder)
    expected = set_table(network, batch_of())
    order = [2, 0, 3, 1]
    shuffled = batch_of([TEXTS[row] for row in order])
    torch.testing.assert_close(set_table(network, shuffled), expected[order])


@EVERY_DECODER
def test_documents_are_told_apart(decoder):
    found = set_table(tiny_network(decoder), batch_of())
    for one in range(len(TEXTS)):
        for other in range(one):
            assert (found[one].exp() - found[other].exp()).abs().max() > 1e-3


@EVERY_DECODER
def test_a_network_is_rebuilt_from_its_weights(decoder):
    settings = {"decoder_layers": 2, "dropout": 0.5, "word_dropout": 0.5}
    network = tiny_network(decoder, **settings)
    config = Config(model=ModelSettings(encoder_units=6, decoder_units=5, **settings))
    again = rebuild_network(network.state_dict(), config, decoder)
    assert not again.training
    batch = batch_of()
    expected = sequence_log_probs(network.decoder, network.encode(batch))
    for sequence, log_prob in sequence_log_probs(again.decoder, again.encode(batch)).items():
        assert torch.equal(log_prob, expected[sequence])


@EVERY_DECODER
def test_every_parameter_learns_from_the_score(decoder):
    network = tiny_network(decoder)
    tokens = Ragged.from_lists(TEXTS)
    encoding = network.encode(make_batch(tokens, None, batch_of().rows))
    orders = torch.tensor([[2, 0], [1, -1]]).expand(len(TEXTS), -1, -1)
    network.decoder.score(encoding, orders).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


def test_each_document_has_a_logit_a_label_whatever_is_beside_it():
    network = tiny_network("sigmoid")
    together = network.decoder.logits(network.encode(batch_of()))
    assert together.shape == (len(TEXTS), 4)
    alone = [network.decoder.logits(network.encode(batch_of([text]))) for text in TEXTS]
    torch.testing.assert_close(together, torch.cat(alone))


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
