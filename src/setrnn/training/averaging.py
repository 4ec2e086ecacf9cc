"""The average of the weights over the last steps: steadier than the weights of any one step."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn

from setrnn.model.network import Network

_WEIGHTS, _N_STEPS = "average.", "n_steps_averaged"


class AveragedNetwork:
    """An exponential moving average of a network's weights; with a decay of 0, the network itself.

    After n steps the decay is min(decay, (1 + n) / (10 + n)), so that the first weights are soon
    forgotten.
    """

    def __init__(self, network: Network, decay: float) -> None:
        self.decay, self.n_steps = decay, 0
        self.network = _copy(network) if decay else network
        pairs = list(zip(network.parameters(), self.network.parameters(), strict=True))
        self._trained: list[Tensor] = [own for own, _ in pairs if own.requires_grad]
        self._averages: list[Tensor] = [each for own, each in pairs if own.requires_grad]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a step; a GPU is not waited for."""
        if self.decay:
            self.n_steps += 1
            decay = min(self.decay, (1 + self.n_steps) / (10 + self.n_steps))
            torch._foreach_lerp_(self._averages, self._trained, 1 - decay)

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint must hold, as named tensors."""
        if not self.decay:
            return {}
        weights = {f"{_WEIGHTS}{name}": each for name, each in self.network.state_dict().items()}
        return weights | {_N_STEPS: torch.tensor(self.n_steps)}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Bring the average back to where a checkpoint was taken."""
        if self.decay:
            names = self.network.state_dict()
            self.network.load_state_dict({name: tensors[f"{_WEIGHTS}{name}"] for name in names})
            self.n_steps = int(tensors[_N_STEPS])


def _copy(network: Network) -> Network:
    copied = deepcopy(network).requires_grad_(False).eval()
    for module in copied.modules():
        if isinstance(module, nn.RNNBase):  # its weights lay side by side, as cuDNN wants them
            module.flatten_parameters()
    return copied
