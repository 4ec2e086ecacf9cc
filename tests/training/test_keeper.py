import copy

import pytest
import torch

from setrnn.config import TrainingSettings
from setrnn.training.keeper import restore_training_state, training_state
from setrnn.training.optimizer import make_optimizer


def _trained(network, inputs, state=None):
    """Take a step for each input, from a state if there is one; return the state after."""
    optimizer = make_optimizer(network, TrainingSettings())
    if state is not None:
        restore_training_state(state, network, optimizer)
    for each in inputs:
        torch.nn.functional.dropout(network(each)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return {name: each.clone() for name, each in training_state(network, optimizer).items()}


def test_a_state_brings_everything_back():
    torch.manual_seed(0)
    network, inputs = torch.nn.Linear(4, 3), torch.randn(6, 5, 4)
    start = copy.deepcopy(network)
    torch.manual_seed(1)
    whole = _trained(network, inputs)
    torch.manual_seed(1)
    half = _trained(start, inputs[:3])
    torch.manual_seed(99)
    resumed = _trained(torch.nn.Linear(4, 3), inputs[3:], state=half)
    assert whole.keys() == resumed.keys()
    assert whole["optimizer.step.weight"] == 6
    for name, each in whole.items():
        assert torch.equal(each, resumed[name]), name


def test_precisions_are_float32_and_bfloat16():
    with pytest.raises(ValueError, match="float16"):
        TrainingSettings(precision="float16")
