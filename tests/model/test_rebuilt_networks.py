import torch

from brute_force_sequences import TEXTS, batch_of, tiny_network
from setrnn.config import ModelSettings
from setrnn.model.network import Network, rebuild_network
from tiny_transformers import tiny_transformer


def test_each_document_has_a_logit_a_label_whatever_is_beside_it():
    network = tiny_network("sigmoid")
    together = network.decoder.logits(network.encode(batch_of()))
    assert together.shape == (len(TEXTS), 4)
    alone = [network.decoder.logits(network.encode(batch_of([text]))) for text in TEXTS]
    torch.testing.assert_close(together, torch.cat(alone))


def test_a_document_begins_with_about_one_label():
    network = Network(torch.zeros(9, 4), torch.zeros(50, 4), ModelSettings(), decoder="sigmoid")
    logits = network.decoder.logits(network.encode(batch_of([[3, 4]])))
    assert 0.5 < logits.sigmoid().sum().item() < 2


def test_both_encoders_are_rebuilt_from_the_weights_alone():
    for decoder in ("sigmoid", "rnn"):
        for encoder, source in (("gru", torch.randn(20, 4)), ("transformer", tiny_transformer(20))):
            settings = ModelSettings(encoder_units=6, decoder_units=5)
            network = Network(source, torch.randn(4, 4), settings, encoder, decoder).eval()
            again = rebuild_network(network.state_dict(), settings, decoder)
            assert again.state_dict().keys() == network.state_dict().keys()
            found, expected = again.encode(batch_of()), network.encode(batch_of())
            assert torch.equal(found.memory, expected.memory)
            assert torch.equal(found.summary, expected.summary)


def test_rebuilding_costs_no_chance_and_keeps_no_path():
    network = Network(tiny_transformer(20), torch.randn(4, 4), ModelSettings(), "transformer")
    before = torch.get_rng_state()
    rebuild_network(network.state_dict(), ModelSettings())
    assert torch.equal(torch.get_rng_state(), before)
    assert b"_name_or_path" not in network.encoder.architecture.numpy().tobytes()
