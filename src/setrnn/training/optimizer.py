"""The optimizer, and its learning rate: a rise, then a fall."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from setrnn.config import TrainingSettings

PRETRAINED = "encoder.transformer."


def make_optimizer(
    network: nn.Module, settings: TrainingSettings, pretrained_rate: float | None = None
) -> Optimizer:
    """Return the optimizer of the weights that are to be trained.

    Those of a pretrained transformer are a group of their own, behind the others, with a rate
    of their own.

    With a weight decay of 0 it is the paper's Adam. Fabric cannot clip scaled gradients,
    float16's, under a fused one.
    """
    trained = [(name, each) for name, each in network.named_parameters() if each.requires_grad]
    pretrained = [each for name, each in trained if name.startswith(PRETRAINED)]
    others = [each for name, each in trained if not name.startswith(PRETRAINED)]
    groups: list[dict[str, Any]] = [{"params": others, "share_of_rate": 1.0}]
    if pretrained:
        assert pretrained_rate is not None
        share = pretrained_rate / settings.learning_rate
        groups.append({"params": pretrained, "share_of_rate": share})
    return torch.optim.AdamW(
        groups,
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=settings.precision != "float16",
    )


def set_learning_rate(optimizer: Optimizer, progress: float, settings: TrainingSettings) -> None:
    """Set the rate of each group after a share of the whole training, from 0 to 1."""
    rate = learning_rate(progress, settings)
    for group in optimizer.param_groups:
        group["lr"] = rate * group["share_of_rate"]


def learning_rate(progress: float, settings: TrainingSettings) -> float:
    """Return the rate after a share of the whole training, from 0 to 1."""
    if progress < settings.warm_up:
        return settings.learning_rate * progress / settings.warm_up
    if settings.decay == "none" or settings.warm_up == 1:
        return settings.learning_rate
    return settings.learning_rate * (1 - progress) / (1 - settings.warm_up)
