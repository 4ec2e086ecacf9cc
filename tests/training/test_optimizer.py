import copy

import pytest
import torch
from tiny_runs import Run, same_bits, tiny_config

from brute_force_sequences import network_of
from setrnn.config import TrainingSettings, load_config
from setrnn.training.optimizer import (
    AveragedNetwork,
    learning_rate,
    make_optimizer,
    set_learning_rate,
    speed_up_rows,
)

AVERAGE = "training.average=0.9"


def test_the_rate_rises_then_falls_to_zero():
    settings = TrainingSettings(learning_rate=2.0, warm_up=0.25)
    found = [learning_rate(share, settings) for share in (0, 0.125, 0.25, 0.625, 1)]
    assert found == pytest.approx([0, 1, 2, 1, 0])


def test_frozen_weights_are_not_trained():
    network = torch.nn.Linear(2, 2)
    network.bias.requires_grad_(False)
    (group,) = make_optimizer(network, load_config()).param_groups
    assert [each is network.weight for each in group["params"]] == [True]


def test_pretrained_weights_and_word_vectors_have_rates_of_their_own():
    own = {"transformer": torch.nn.Linear(2, 2), "words": torch.nn.Embedding(2, 2)}
    parts = {"decoder": torch.nn.Linear(2, 2), "encoder": torch.nn.ModuleDict(own)}
    overrides = ["training.learning_rate=2", "training.warm_up=0.25", "encoder.learning_rate=0.5"]
    config = load_config(overrides=overrides)
    optimizer = make_optimizer(torch.nn.ModuleDict(parts), config)
    others, pretrained, words = optimizer.param_groups
    assert others["params"] == list(parts["decoder"].parameters())
    assert pretrained["params"] == list(own["transformer"].parameters())
    assert words["params"] == list(own["words"].parameters())
    for progress, share in ((0.125, 0.5), (0.25, 1.0), (0.625, 0.5)):
        set_learning_rate(optimizer, progress, config.training)
        rates = [each["lr"] for each in (others, pretrained, words)]
        assert rates == pytest.approx([2.0 * share, 0.5 * share, 0.2 * share])


@pytest.fixture
def network():
    settings = tiny_config("model.word_vectors=frozen").model
    return network_of(torch.randn(5, 8), torch.randn(3, 8), settings)


def _change(network):
    with torch.no_grad():
        for each in network.parameters():
            if each.requires_grad:
                each.normal_()


def test_the_average_is_the_weighted_mean_of_all_weights_so_far(network):
    average = AveragedNetwork(network, 0.3)
    expected = {name: each.double() for name, each in network.state_dict().items()}
    for step in range(1, 6):
        _change(network)
        average.update()
        decay = min(0.3, (1 + step) / (10 + step))
        for name, each in network.state_dict().items():
            expected[name] = decay * expected[name] + (1 - decay) * each.double()
    for name, each in average.network.state_dict().items():
        torch.testing.assert_close(each.double(), expected[name], atol=1e-6, rtol=1e-5)
    frozen = "encoder.words.weight"
    assert torch.equal(average.network.state_dict()[frozen], network.state_dict()[frozen])


@pytest.fixture(scope="module")
def averaged(tiny):
    return Run(tiny, AVERAGE)


def test_training_continues_with_the_weights_themselves(averaged, never_stopped):
    assert averaged.losses == never_stopped.losses
    assert not same_bits(averaged.weights, never_stopped.weights)


def test_the_average_is_what_is_measured_and_kept(train, monkeypatch):
    measured = []

    def note(system, *_):
        measured.append(copy.deepcopy(system.network.state_dict()))
        return {"instance_f1": [0.5, 0.9, 0.1][len(measured) - 1]}

    monkeypatch.setattr("setrnn.training.loop.validate", note)
    run = train(AVERAGE, "training.epochs=3")
    assert same_bits(run.weights, measured[1])
    assert not same_bits(run.weights, measured[2])


def test_some_rows_take_longer_steps():
    plain, sped = (torch.nn.Linear(3, 4) for _ in range(2))
    sped.load_state_dict(plain.state_dict())
    before = plain.weight.detach().clone()
    rows = torch.tensor([1, 3])
    for network in (plain, sped):
        optimizer = make_optimizer(network, load_config(overrides=["training.learning_rate=0.1"]))
        if network is sped:
            speed_up_rows(optimizer, network, {"weight": rows}, 4.0)
        network(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
    steps, longer = plain.weight - before, sped.weight - before
    assert torch.allclose(longer[rows], 4 * steps[rows], atol=1e-6)
    assert torch.equal(longer[[0, 2]], steps[[0, 2]])
    assert torch.equal(plain.bias, sped.bias)
