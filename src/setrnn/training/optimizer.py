"""The optimizer, and its learning rate: a rise, then a fall."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim import Optimizer

from setrnn.config import TrainingSettings


def make_optimizer(network: nn.Module, settings: TrainingSettings) -> Optimizer:
    """Return the optimizer of the weights that are to be trained.

    With a weight decay of 0 it is the paper's Adam. Fabric cannot clip scaled gradients,
    float16's, under a fused one.
    """
    return torch.optim.AdamW(
        [each for each in network.parameters() if each.requires_grad],
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=settings.precision != "float16",
    )


def set_learning_rate(optimizer: Optimizer, progress: float, settings: TrainingSettings) -> None:
    """Set the rate after a share of the whole training, from 0 to 1."""
    rate = learning_rate(progress, settings)
    for group in optimizer.param_groups:
        group["lr"] = rate


def learning_rate(progress: float, settings: TrainingSettings) -> float:
    """Return the rate after a share of the whole training, from 0 to 1."""
    if progress < settings.warm_up:
        return settings.learning_rate * progress / settings.warm_up
    if settings.decay == "none" or settings.warm_up == 1:
        return settings.learning_rate
    return settings.learning_rate * (1 - progress) / (1 - settings.warm_up)
