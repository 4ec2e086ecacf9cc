"""The other processes of a training: they get the network from the first, and train with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from setrnn.config import Config, from_dict, to_dict
from setrnn.data.prepared import Prepared
from setrnn.errors import DataError, SetRNNError, StoppedError
from setrnn.methods import find_method
from setrnn.model.network import rebuild_network, select_prefix
from setrnn.training.keeper import MODEL, restore_training_state, training_state
from setrnn.training.ranks import Ranks
from setrnn.training.run_folder import Position

if TYPE_CHECKING:
    from setrnn.training.loop import Trainer

_LOG_ODDS = "log_odds"


def share_training(trainer: Trainer) -> None:
    """Send the other processes all that they need to train with this one, the first.

    The data is not sent: they read the prepared folder.
    """
    from safetensors.torch import save

    state = training_state(trainer.network, trainer.keeper.optimizer, trainer.fabric)
    tensors = state | trainer.keeper.average.state()
    if trainer.train.log_odds is not None:
        tensors[_LOG_ODDS] = torch.from_numpy(trainer.train.log_odds)
    weights = trainer.network.named_parameters()
    about = {
        "method": trainer.method.name,
        "folder": str(trainer.prepared.folder.resolve()),
        "config": to_dict(trainer.config),
        "rule": trainer.rule,
        "position": asdict(trainer.position),
        "frozen": [name for name, each in weights if not each.requires_grad],
        "n_threads": torch.get_num_threads(),
    }
    on_cpu = {name: each.detach().cpu().contiguous() for name, each in tensors.items()}
    trainer.ranks.share(json.dumps(about).encode())
    trainer.ranks.share(save(on_cpu))


def follow(ranks: Ranks, device: torch.device) -> None:
    """Train with the first process until it ends or stops the training."""
    from safetensors.torch import load

    about, tensors = json.loads(ranks.share()), load(ranks.share())
    torch.set_num_threads(about["n_threads"])  # it decides how batches are cut
    trainer = _make_trainer(about, tensors, ranks, device)
    try:
        trainer.train_to_end()
    except StoppedError:  # the first process has saved the run, and says so
        return


def _make_trainer(
    about: Mapping[str, Any], tensors: Mapping[str, Tensor], ranks: Ranks, device: torch.device
) -> Trainer:
    from setrnn.training.loop import Trainer, list_training_documents
    from setrnn.training.start import make_fabric

    config, method = from_dict(Config, about["config"]), find_method(about["method"])
    prepared = _open_data(Path(about["folder"]))
    # A rebuilt network keeps products of its weights; a copy of it does not.
    network = deepcopy(rebuild_network(select_prefix(MODEL, tensors), config, method.decoder))
    for name, each in network.named_parameters():
        each.requires_grad_(name not in about["frozen"])
    documents, log_odds = list_training_documents(prepared, config), tensors.get(_LOG_ODDS)
    if log_odds is not None:
        documents = replace(documents, log_odds=log_odds.numpy())
    fabric = make_fabric(device, config.training.precision)
    trainer = Trainer(
        network.to(fabric.device),
        prepared,
        config,
        method,
        fabric,
        documents=documents,
        rule=about["rule"],
    )
    trainer.join(ranks)
    restore_training_state(tensors, trainer.network, trainer.keeper.optimizer, fabric)
    trainer.keeper.average.restore(tensors)
    trainer.keeper.position = Position(**about["position"])
    return trainer


def _open_data(folder: Path) -> Prepared:
    try:
        return Prepared(folder)
    except (SetRNNError, OSError) as error:
        raise DataError(
            f"A process of this training cannot read the prepared data in {folder}. Prepare it on "
            "a disk that all machines share: setrnn data prepare DATA --out FOLDER"
        ) from error
