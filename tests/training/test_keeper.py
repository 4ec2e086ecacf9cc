import copy

import pytest
import torch

from setrnn.config import TrainingSettings
from setrnn.training.keeper import restore_training_state, training_state
from setrnn.training.optimizer import make_optimizer


def _fabric(precision):
    from lightning_fabric import Fabric
    from lightning_fabric.plugins import MixedPrecision

    if precision == "float16":  # on a CPU, for the test; in use it needs a GPU
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        plugin = MixedPrecision("16-mixed", "cpu", scaler)
        return Fabric(accelerator="cpu", devices=1, plugins=plugin)
    return Fabric(accelerator="cpu", devices=1)


def _trained(network, precision, inputs, state=None):
    """Take a step for each input, from a state if there is one; return the state after."""
    fabric = _fabric(precision)
    optimizer = make_optimizer(network, TrainingSettings(precision=precision))
    wrapped = fabric.setup_optimizers(optimizer)
    if state is not None:
        restore_training_state(state, network, optimizer, fabric)
    for each in inputs:
        with fabric.autocast():
            loss = torch.nn.functional.dropout(network(each)).float().pow(2).mean()
        fabric.backward(loss)
        fabric.clip_gradients(network, wrapped, max_norm=0.1, error_if_nonfinite=False)
        wrapped.step()
        wrapped.zero_grad()
    return {name: each.clone() for name, each in training_state(network, optimizer, fabric).items()}


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_state_brings_everything_back(precision):
    torch.manual_seed(0)
    network, inputs = torch.nn.Linear(4, 3), torch.randn(6, 5, 4)
    inputs[1] = 1e30  # in float16 this overflows: the step is left out, the scale halved
    if precision == "float32":
        inputs[1] = 1
    start = copy.deepcopy(network)
    torch.manual_seed(1)
    whole = _trained(network, precision, inputs)
    torch.manual_seed(1)
    half = _trained(start, precision, inputs[:3])
    torch.manual_seed(99)
    resumed = _trained(torch.nn.Linear(4, 3), precision, inputs[3:], state=half)
    assert whole.keys() == resumed.keys()
    for name, each in whole.items():
        assert torch.equal(each, resumed[name]), name
    assert ("precision.scale" in whole) == (precision == "float16")


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_the_gradient_that_is_clipped_is_the_true_one(precision):
    torch.manual_seed(0)
    state = _trained(torch.nn.Linear(4, 3), precision, torch.randn(1, 5, 4))
    moments = [each.flatten() for name, each in state.items() if "exp_avg." in name]
    # The first moment is a tenth of the gradient, whose norm is clipped to 0.1.
    assert torch.cat(moments).norm() == pytest.approx(0.01, rel=0.01)


def test_the_precision_may_change_between():
    torch.manual_seed(0)
    inputs = torch.randn(4, 5, 4)
    state = _trained(torch.nn.Linear(4, 3), "float16", inputs[:2])
    after = _trained(torch.nn.Linear(4, 3), "float32", inputs[2:], state=state)
    assert after["optimizer.step.weight"] == 4
    _trained(torch.nn.Linear(4, 3), "float16", inputs[:2], state=after)
