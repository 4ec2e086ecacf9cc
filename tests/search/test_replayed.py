"""A recorded search: what padding may not change, and on a GPU, that a replay finds the same."""

from dataclasses import replace

import pytest
import torch

from brute_force_sequences import EVERY_DECODER, STEPPING_DECODERS, TEXTS, batch_of, tiny_network
from setrnn.objectives.few_orders import find_orders
from setrnn.objectives.own_sequences import draw, take_best
from setrnn.objectives.sampled_order import sample_orders
from setrnn.search.replayed import _REPLAYS, pad_search, padded_shape, replay
from setrnn.search.subset_sums import _search_subsets

K = 3
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LABEL_SETS = torch.tensor([[0, 2, 3, -1], [1, 2, -1, -1], [0, 1, 2, 3]])


def network_and_encoding(decoder, device="cpu"):
    network = tiny_network(decoder=decoder).to(device).eval()
    with torch.no_grad():
        return network, network.encode(batch_of(TEXTS[:3]).to(torch.device(device)))


@EVERY_DECODER
def test_padding_changes_no_order(decoder):
    network, encoding = network_and_encoding(decoder)
    shape = padded_shape(encoding, LABEL_SETS, K)
    padded = find_orders(network.decoder, *pad_search(encoding, LABEL_SETS, shape), K)
    plain = find_orders(network.decoder, encoding, LABEL_SETS, K)
    assert torch.equal(padded[:3, :, :4], plain)


def test_padding_changes_no_subset():
    network, encoding = network_and_encoding("order-free")
    shape = (16, 32, 6, K)
    padded = _search_subsets(network.decoder, *pad_search(encoding, LABEL_SETS, shape), K)
    plain = _search_subsets(network.decoder, encoding, LABEL_SETS, K)
    assert torch.equal(padded[:3, :5], plain)
    assert (padded[:, 5:] == -1).all()


@EVERY_DECODER
def test_padding_changes_no_emitted_sequence(decoder):
    network, encoding = network_and_encoding(decoder)
    label_sets = LABEL_SETS[:, :2]  # not as many as there are labels: sequences are cut
    padded = take_best(network.decoder, *pad_search(encoding, label_sets, (16, 32, 4, 1)), 1)
    plain = take_best(network.decoder, encoding, label_sets, 1)
    assert torch.equal(padded[:3, : plain.shape[1]], plain)
    assert (padded[:3, plain.shape[1] :] == -1).all()


def test_a_larger_search_has_no_shape():
    _, encoding = network_and_encoding("rnn")
    assert padded_shape(encoding, torch.zeros(3, 1000, dtype=torch.long), K) is None


@NEEDS_GPU
@pytest.mark.parametrize(
    ("search", "decoder", "beam_width"),
    [
        *((find_orders, decoder, K) for decoder in STEPPING_DECODERS),
        *((take_best, decoder, 1) for decoder in STEPPING_DECODERS),
        (_search_subsets, "order-free", K),
    ],
)
def test_a_replay_finds_the_same_also_with_other_weights(search, decoder, beam_width):
    network, encoding = network_and_encoding(decoder, "cuda")
    label_sets = LABEL_SETS.cuda()
    for _ in range(5):
        with torch.no_grad():
            for each in network.decoder.parameters():
                each.add_(0.3 * torch.randn_like(each))
            found = replay(search, network.decoder, encoding, label_sets, beam_width)
            again = search(network.decoder, encoding, label_sets, beam_width)
        assert torch.equal(found[tuple(slice(size) for size in again.shape)], again)


@NEEDS_GPU
@pytest.mark.parametrize("search", [draw, sample_orders])
def test_every_replay_draws_again_and_as_often(search):
    network, encoding = network_and_encoding("rnn", "cuda")
    label_sets = LABEL_SETS.cuda()

    def first_labels(call):
        found = torch.stack([call().reshape(3, -1)[:, 0] for _ in range(600)])  # (600, 3)
        counts = torch.stack([(found == label).sum(0) for label in range(-1, 4)])
        return counts.double() / len(found)

    replayed = first_labels(lambda: replay(search, network.decoder, encoding, label_sets, 1))
    plain = first_labels(lambda: search(network.decoder, encoding, label_sets, 1))
    assert (replayed > 0).sum() > 3, "not the same draw each time"
    assert (replayed - plain).abs().max() < 0.15  # five standard errors are 0.144 at most


@NEEDS_GPU
def test_replays_keep_no_gradients_of_the_documents():
    network, encoding = network_and_encoding("rnn", "cuda")
    encoding = replace(encoding, memory=encoding.memory.clone().requires_grad_())
    for _ in range(5):
        replay(take_best, network.decoder, encoding, LABEL_SETS.cuda(), 1)
    (recorded,) = _REPLAYS[network.decoder].searches.values()
    assert not recorded.encoding.memory.requires_grad
