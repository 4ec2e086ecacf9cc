"""What a step does to the weights: the optimizer, its learning rate, and the average of weights."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import get_ema_multi_avg_fn

from setrnn.config import Config, TrainingSettings
from setrnn.data.disk import select_prefix
from setrnn.model.network import Network

PRETRAINED, WORD_VECTORS = "encoder.transformer.", "encoder.words."
SLOW = 0.1  # the share of the learning rate for word vectors that are "slow"
_WEIGHTS, _N_STEPS = "average.", "n_steps_averaged"


def make_optimizer(network: nn.Module, config: Config) -> Optimizer:
    """Return AdamW over the weights to train; with a weight decay of 0 it is the paper's Adam.

    The weights of a pretrained transformer, and word vectors, have a share of the learning rate.
    """
    settings = config.training
    shares = {PRETRAINED: config.encoder.learning_rate / settings.learning_rate}
    if config.model.word_vectors == "slow":
        shares[WORD_VECTORS] = SLOW
    groups: dict[float, list[Tensor]] = {}
    for name, weights in network.named_parameters():
        if weights.requires_grad:
            share = next((shares[each] for each in shares if name.startswith(each)), 1.0)
            groups.setdefault(share, []).append(weights)
    return torch.optim.AdamW(
        [{"params": each, "share_of_rate": share} for share, each in groups.items()],
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )


def speed_up_rows(
    optimizer: Optimizer, network: nn.Module, rows: Mapping[str, Tensor], times: float
) -> None:
    """Let some rows of weights, by the names of these, take steps that are longer.

    The rows are new, and must learn while the other weights stay near what they have learned.
    """
    named = dict(network.named_parameters())
    chosen = [(named[name], each.to(named[name].device)) for name, each in rows.items()]
    before: list[Tensor] = []

    def keep(*arguments: object) -> None:
        before[:] = [weights.detach()[own] for weights, own in chosen]

    def lengthen(*arguments: object) -> None:
        with torch.no_grad():
            for (weights, own), start in zip(chosen, before, strict=True):
                weights[own] = start + times * (weights[own] - start)

    if chosen and times != 1:
        optimizer.register_step_pre_hook(keep)
        optimizer.register_step_post_hook(lengthen)


def learning_rate(progress: float, settings: TrainingSettings) -> float:
    """Return the rate when a share of the training, from 0 to 1, is done: a rise, then a fall."""
    if progress < settings.warm_up:
        return settings.learning_rate * progress / settings.warm_up
    if settings.decay == "none" or settings.warm_up == 1:
        return settings.learning_rate
    return settings.learning_rate * (1 - progress) / (1 - settings.warm_up)


def set_learning_rate(optimizer: Optimizer, progress: float, settings: TrainingSettings) -> None:
    """Set the rate of each group when a share of the training, from 0 to 1, is done."""
    rate = learning_rate(progress, settings)
    for group in optimizer.param_groups:
        group["lr"] = rate * group["share_of_rate"]


class AveragedNetwork:
    """An exponential moving average of a network's weights; with a decay of 0, the network itself.

    After n steps the decay is min(decay, (1 + n) / (10 + n)), so that the initial weights lose
    their influence quickly.
    """

    def __init__(self, network: Network, decay: float) -> None:
        self.decay, self.n_steps = decay, 0
        self.network = _copy_network(network) if decay else network
        pairs = list(zip(network.parameters(), self.network.parameters(), strict=True))
        self._trained: list[Tensor] = [own for own, _ in pairs if own.requires_grad]
        self._averages: list[Tensor] = [each for own, each in pairs if own.requires_grad]

    @torch.no_grad()
    def update(self) -> None:
        """Add the weights after a step to the average, without waiting for the GPU."""
        if self.decay:
            self.n_steps += 1
            decay = min(self.decay, (1 + self.n_steps) / (10 + self.n_steps))
            add_to_average = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
            add_to_average(self._averages, self._trained, self.n_steps)

    def state(self) -> dict[str, Tensor]:
        """Return the tensors that a checkpoint must hold, by name."""
        if not self.decay:
            return {}
        weights = {f"{_WEIGHTS}{name}": each for name, each in self.network.state_dict().items()}
        return weights | {_N_STEPS: torch.tensor(self.n_steps)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the average from the tensors of a checkpoint."""
        if self.decay:
            self.network.load_state_dict(select_prefix(_WEIGHTS, tensors))
            self.n_steps = int(tensors[_N_STEPS])


def _copy_network(network: Network) -> Network:
    copied = deepcopy(network).requires_grad_(False).eval()
    for module in copied.modules():
        if isinstance(module, nn.RNNBase):  # cuDNN wants the weights in one block of memory
            module.flatten_parameters()
    return copied
