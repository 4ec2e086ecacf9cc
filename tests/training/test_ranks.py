"""Two processes that train one network: the same bits as two threads of one, also after a stop."""

import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest
import torch
import torch.distributed as dist
from tiny_runs import Run, same_bits

from setrnn.errors import ConfigError, StoppedError
from setrnn.model.devices import limited_threads
from setrnn.tagging.learn.train import train
from setrnn.training import gradients
from setrnn.training.gradients import Gradients
from setrnn.training.loop import Trainer
from setrnn.training.ranks import Ranks

SETTINGS, RULE = ("training.metric=label_f1", "training.average=0.9"), "label-f1"  # thresholds


def cut_in_two(patch=setattr):
    patch(gradients, "LEAST_WORK", 1)
    patch(gradients, "LEAST_DOCUMENTS", 1)


def train_as(rank, prepared, folder):
    """Train as one of two processes that are stopped and resumed; keep what was found."""
    torch.set_num_threads(1)
    cut_in_two()
    store = dist.FileStore(str(folder / "store"), 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    step, steps = Trainer._step, iter(range(1, 1_000_000))

    def step_and_signal(self, *arguments):
        if next(steps) == 6 and rank == 1:  # in the second epoch; the other hears of it
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, *arguments)

    Trainer._step = step_and_signal
    with pytest.raises(StoppedError, match="epoch 2"):
        Run(prepared, *SETTINGS, rule=RULE, folder=folder / "m.run")
    run = Run(prepared, *SETTINGS, rule=RULE, folder=folder / "m.run", resume=True)
    found = run.losses, run.measures, run.weights
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(found))
    dist.destroy_process_group()


def test_two_processes_train_as_two_threads_of_one(tiny, tmp_path, monkeypatch):
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=train_as, args=(rank, tiny, tmp_path), daemon=True)
        for rank in (0, 1)
    ]
    for each in processes:
        each.start()
    for each in processes:
        each.join()
        assert each.exitcode == 0
    (losses, measures, weights), other = (
        pickle.loads((tmp_path / f"{rank}.pickle").read_bytes()) for rank in (0, 1)
    )
    assert losses == other[0]
    assert same_bits(weights, other[2])
    cut_in_two(monkeypatch.setattr)
    with limited_threads(2):
        whole = Run(tiny, *SETTINGS, rule=RULE)
    assert losses == whole.losses
    assert same_bits(weights, whole.weights)
    for found, expected in zip(measures, whole.measures, strict=True):
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 40])
def test_processes_share_all_rows_of_a_batch(n_rows):
    sizes, cpu = np.arange(n_rows) % 3, torch.device("cpu")
    with limited_threads(2):
        cutters = [
            Gradients(torch.nn.Linear(2000, 2000), cpu, None, 3, ranks=Ranks(rank, 2))
            for rank in (0, 1)
        ]
    cut = [cutter.cut(np.arange(n_rows), sizes) for cutter in cutters]
    assert sorted(np.concatenate([*cut[0], *cut[1]]).tolist()) == list(range(n_rows))
    assert [len(pieces) for pieces in cut] == ([2, 2] if n_rows == 40 else [1, min(n_rows - 1, 1)])


@pytest.mark.parametrize("method", [None, "br"])
def test_several_processes_train_one_network_only(method, tmp_path, monkeypatch):
    monkeypatch.setattr("setrnn.tagging.learn.train.find_ranks", lambda: Ranks(0, 2))
    with pytest.raises(ConfigError, match="one process"):
        train("newsroom", method, out=tmp_path / "m")
    assert not list(tmp_path.iterdir())
