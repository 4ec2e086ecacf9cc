"""Checkpoints: one safetensors file each, written whole or not at all; nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from setrnn.data.folders import whole_file
from setrnn.errors import ModelError

FORMAT = 1


@dataclass
class Position:
    """How far a run has come."""

    epoch: int = 0  # epochs that are done
    batch: int = 0  # batches of the next one that are done
    loss_sum: float = 0.0  # of these batches, over documents
    n_documents: int = 0  # in them
    best_epoch: int = 0  # counted from 1; 0 before the first
    best_value: float = 0.0
    seconds: float = 0.0
    is_finished: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)  # a row for each epoch


def write_checkpoint(
    file: Path, tensors: Mapping[str, Tensor], position: Position, identity: Mapping[str, Any]
) -> None:
    """Write tensors, the position, and what run they belong to."""
    from safetensors.torch import save

    state = {"format": FORMAT, "position": asdict(position), "identity": dict(identity)}
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    with whole_file(file) as stream:
        stream.write(save(contiguous, metadata={"setrnn": json.dumps(state)}))


def read_checkpoint(file: Path) -> tuple[dict[str, Tensor], Position, dict[str, Any]]:
    """Read a checkpoint, and check that it is one."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            state = json.loads((opened.metadata() or {})["setrnn"])
            if state["format"] != FORMAT:
                raise ModelError(f"{file} was written by another version of setrnn. Train anew.")
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return tensors, Position(**state["position"]), state["identity"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{file} is damaged or no checkpoint. Remove it and train anew."
        ) from error


def training_tensors(
    network: nn.Module, optimizer: Optimizer, device: torch.device
) -> dict[str, Tensor]:
    """Return all that decides how training goes on: weights, moments, random states."""
    tensors = {f"model.{name}": tensor for name, tensor in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{key}.{name}"] = value
    tensors["random.cpu"] = torch.get_rng_state()
    if device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(device)
    return tensors


def restore(
    tensors: Mapping[str, Tensor], network: nn.Module, optimizer: Optimizer, device: torch.device
) -> None:
    """Bring a network, its optimizer and the random states back to a checkpoint."""
    network.load_state_dict(model_weights(tensors))
    for name, parameter in network.named_parameters():
        for key in ("step", "exp_avg", "exp_avg_sq"):
            value = tensors.get(f"optimizer.{key}.{name}")
            if value is not None:
                kept_on = value.device if key == "step" and device.type == "cpu" else device
                optimizer.state[parameter][key] = value.to(kept_on)
    torch.set_rng_state(tensors["random.cpu"])
    if device.type == "cuda" and "random.cuda" in tensors:
        torch.cuda.set_rng_state(tensors["random.cuda"], device)


def model_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the network's part of a checkpoint."""
    prefix = "model."
    return {
        name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)
    }
