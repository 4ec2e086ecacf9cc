"""An encoder and a decoder together; brute force over all sets of 4 labels."""

import pytest
import torch

from brute_force_sequences import TEXTS, batch_of, sequence_log_probs, set_log_probs, tiny_network
from setrnn.config import ModelSettings
from setrnn.data.batches import make_batch
from setrnn.data.ragged import Ragged
from setrnn.model.decoders import DECODERS
from setrnn.model.network import rebuild_network

EVERY_DECODER = pytest.mark.parametrize("decoder", DECODERS)


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
    sizes = ModelSettings(encoder_units=6, decoder_units=5, **settings)
    again = rebuild_network(network.state_dict(), sizes, decoder)
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
