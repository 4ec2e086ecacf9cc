"""All that decides how training goes on: weights, moments, the scale of gradients, chance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

if TYPE_CHECKING:
    from lightning.fabric import Fabric

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_MODEL, _OPTIMIZER, _PRECISION = "model.", "optimizer.", "precision."


def training_state(network: nn.Module, optimizer: Optimizer, fabric: Fabric) -> dict[str, Tensor]:
    """Return the state as named tensors."""
    tensors = {f"{_MODEL}{name}": each for name, each in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{_OPTIMIZER}{key}.{name}"] = value
    for name, number in fabric.strategy.precision.state_dict().items():  # of float16's scaler
        tensors[f"{_PRECISION}{name}"] = torch.tensor(number, dtype=torch.float64)
    tensors["random.cpu"] = torch.get_rng_state()
    if fabric.device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(fabric.device)
    return tensors


def restore_training_state(
    tensors: Mapping[str, Tensor], network: nn.Module, optimizer: Optimizer, fabric: Fabric
) -> None:
    """Bring all back to where a checkpoint was taken.

    The precision and the device may be others than they were.
    """
    network.load_state_dict(weights_of(tensors))
    is_fused = bool(optimizer.param_groups[0]["fused"])
    for name, parameter in network.named_parameters():
        for key in MOMENTS:
            value = tensors.get(f"{_OPTIMIZER}{key}.{name}")
            if value is not None:
                place = parameter.device if is_fused or key != "step" else torch.device("cpu")
                optimizer.state[parameter][key] = value.clone().to(place)
    scaler = _starting_with(_PRECISION, tensors)
    if scaler and fabric.strategy.precision.state_dict():
        numbers = {name: float(each) for name, each in scaler.items()}
        fabric.strategy.precision.load_state_dict(
            {name: int(each) if each.is_integer() else each for name, each in numbers.items()}
        )
    torch.set_rng_state(tensors["random.cpu"])
    if fabric.device.type == "cuda" and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"], fabric.device)


def weights_of(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the network's part of a state."""
    return _starting_with(_MODEL, tensors)


def weights_state(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a state of weights alone."""
    return {f"{_MODEL}{name}": each for name, each in weights.items()}


def _starting_with(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    size = len(prefix)
    return {name[size:]: each for name, each in tensors.items() if name.startswith(prefix)}
