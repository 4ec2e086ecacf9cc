from math import log

import pytest
import torch

from brute_force import all_sets, product_probability
from brute_force_sequences import TEXTS, batch_of, sets_of, tiny_network
from setrnn.objectives import find_objective

OBJECTIVE = find_objective("independent-labels")


def test_the_value_is_the_log_probability_of_the_set():
    network = tiny_network("sigmoid")
    encoding = network.encode(batch_of())
    logits = network.decoder.logits(encoding).detach()
    for labels in all_sets(4):
        values = OBJECTIVE(network.decoder, encoding, sets_of([labels] * len(TEXTS)), 12)
        for row, value in zip(logits, values, strict=True):
            expected = log(product_probability(row, labels))
            assert value.item() == pytest.approx(expected, abs=1e-5)


def test_sets_of_all_sizes_stand_in_one_batch():
    network = tiny_network("sigmoid")
    encoding = network.encode(batch_of())
    label_sets = [(0, 1, 2, 3), (1,), (), (0, 3)]
    together = OBJECTIVE(network.decoder, encoding, sets_of(label_sets), 1)
    for row, labels in enumerate(label_sets):
        alone = OBJECTIVE(network.decoder, encoding, sets_of([labels] * len(TEXTS)), 1)
        torch.testing.assert_close(together[row], alone[row])


def test_it_is_the_usual_binary_cross_entropy():
    network = tiny_network("sigmoid")
    encoding = network.encode(batch_of())
    values = OBJECTIVE(network.decoder, encoding, sets_of([(0, 2), (1,), (), (3,)]), 1)
    truth = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1.0]])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        network.decoder.logits(encoding), truth, reduction="sum"
    )
    torch.testing.assert_close(-values.sum(), loss)


def test_every_parameter_learns_from_it():
    network = tiny_network("sigmoid")
    values = OBJECTIVE(network.decoder, network.encode(batch_of()), sets_of([(0,)] * 4), 1)
    values.sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.abs().max() > 0, name
