import pytest
import torch

from setrnn.config import TrainingSettings
from setrnn.training.optimizer import learning_rate, make_optimizer


def test_the_rate_rises_then_falls_to_zero():
    settings = TrainingSettings(learning_rate=2.0, warm_up=0.25)
    found = [learning_rate(share, settings) for share in (0, 0.125, 0.25, 0.625, 1)]
    assert found == pytest.approx([0, 1, 2, 1, 0])


@pytest.mark.parametrize("warm_up", [0, 0.5, 1])
def test_without_decay_the_rate_stays(warm_up):
    settings = TrainingSettings(learning_rate=2.0, warm_up=warm_up, decay="none")
    assert learning_rate(1.0, settings) == 2.0


def test_frozen_weights_are_not_trained():
    network = torch.nn.Linear(2, 2)
    network.bias.requires_grad_(False)
    (group,) = make_optimizer(network, TrainingSettings()).param_groups
    assert [each is network.weight for each in group["params"]] == [True]
