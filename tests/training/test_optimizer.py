import pytest
import torch

from setrnn.config import TrainingSettings
from setrnn.training.optimizer import learning_rate, make_optimizer, set_learning_rate


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


def test_pretrained_weights_keep_a_rate_of_their_own():
    network = torch.nn.ModuleDict(
        {
            "encoder": torch.nn.ModuleDict({"transformer": torch.nn.Linear(2, 2)}),
            "decoder": torch.nn.Linear(2, 2),
        }
    )
    settings = TrainingSettings(learning_rate=2.0, warm_up=0.25)
    optimizer = make_optimizer(network, settings, pretrained_rate=0.5)
    others, pretrained = optimizer.param_groups
    assert others["params"] == list(network["decoder"].parameters())
    assert pretrained["params"] == list(network["encoder"].parameters())
    for progress, share in ((0.125, 0.5), (0.25, 1.0), (0.625, 0.5)):
        set_learning_rate(optimizer, progress, settings)
        assert others["lr"] == pytest.approx(2.0 * share)
        assert pretrained["lr"] == pytest.approx(0.5 * share)
