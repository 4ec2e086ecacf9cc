"""Two processes that train one network: the same bits as two threads, a stop, a kill, a resume."""

import multiprocessing
from multiprocessing.context import SpawnProcess

import numpy as np
import pytest
import torch
from tiny_runs import Run, same_bits

from setrnn.errors import ConfigError, StoppedError, TrainingError
from setrnn.model.devices import limited_threads
from setrnn.progress import Progress
from setrnn.tagging.train import train
from setrnn.training import launching
from setrnn.training.gradients import Gradients
from setrnn.training.launching import Torchrun, check_processes
from setrnn.training.ranks import Ranks
from setrnn.training.start import make_fabric

CPU, GPU = torch.device("cpu"), torch.device("cuda")
SETTINGS, RULE = ("training.metric=label_f1", "training.average=0.9"), "label-f1"  # thresholds


def run_in_threads(tiny, **more):
    """Train in one process that cuts each batch into two pieces."""
    with pytest.MonkeyPatch.context() as patch, limited_threads(2):
        patch.setattr("setrnn.training.gradients.LEAST_WORK", 1)
        patch.setattr("setrnn.training.gradients.LEAST_DOCUMENTS", 1)
        return Run(tiny, *SETTINGS, rule=RULE, **more)


@pytest.fixture(scope="module")
def in_threads(tiny):
    return run_in_threads(tiny)


def test_two_processes_train_as_two_threads_of_one(tiny, in_threads, tmp_path, signal_at_step):
    """Two processes are stopped in the second epoch, and one process resumes: the same bits."""
    signal_at_step(6)
    with pytest.raises(StoppedError, match="epoch 2"):
        Run(tiny, *SETTINGS, rule=RULE, folder=tmp_path, n_devices=2)
    resumed = run_in_threads(tiny, folder=tmp_path, resume=True)
    assert resumed.losses == in_threads.losses
    assert same_bits(resumed.weights, in_threads.weights)
    for found, expected in zip(resumed.measures, in_threads.measures, strict=True):
        assert found == pytest.approx(expected)


def spawned():
    """The processes of a training; another test may have left those of a library."""
    return [each for each in multiprocessing.active_children() if type(each) is SpawnProcess]


def test_the_other_processes_end_if_one_is_killed_and_the_run_is_resumed(tiny, tmp_path):
    """Without noise, batches in pieces are as good as whole ones; the last has one document."""
    settings = ("training.batch_size=9", "model.dropout=0", "model.word_dropout=0")

    def kill_in_epoch_2(event):
        if isinstance(event, Progress) and event.epoch is not None and event.epoch.number == 2:
            spawned()[0].kill()

    with pytest.raises(TrainingError, match=r"2 of 2.*SIGKILL.*--resume"):
        Run(tiny, *settings, folder=tmp_path, n_devices=2, watch=kill_in_epoch_2)
    assert not spawned()
    resumed, whole = Run(tiny, *settings, folder=tmp_path, resume=True), Run(tiny, *settings)
    assert resumed.losses == pytest.approx(whole.losses, rel=1e-5)
    for name, weights in whole.weights.items():
        torch.testing.assert_close(resumed.weights[name], weights, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 40])
def test_processes_share_all_rows_of_a_batch(n_rows):
    fabric, sizes = make_fabric(CPU, "float32"), np.arange(n_rows) % 3
    with limited_threads(2):
        cutters = [
            Gradients(torch.nn.Linear(2000, 2000), fabric, 3, Ranks(rank, 2)) for rank in (0, 1)
        ]
    cut = [cutter.cut(np.arange(n_rows), sizes) for cutter in cutters]
    assert sorted(np.concatenate([*cut[0], *cut[1]]).tolist()) == list(range(n_rows))
    assert [len(pieces) for pieces in cut] == ([2, 2] if n_rows == 40 else [1, min(n_rows - 1, 1)])


def test_too_many_devices_are_refused(monkeypatch):
    with pytest.raises(ConfigError, match="got 0"):
        check_processes(0, CPU)
    monkeypatch.setattr(launching, "n_cores", lambda: 1)
    check_processes(2, CPU)
    with pytest.raises(ConfigError, match="1 cores here"):
        check_processes(3, CPU)
    monkeypatch.setattr(launching, "count_gpus", lambda: 2)
    with pytest.raises(ConfigError, match="2 GPUs here, not 8"):
        check_processes(8, GPU)
    check_processes(2, GPU)
    monkeypatch.setattr(launching, "find_torchrun", lambda: Torchrun(0, 4, 2, 0))
    check_processes(4, GPU)  # two machines with two GPUs each
    with pytest.raises(ConfigError, match="torchrun has started 4"):
        check_processes(2, GPU)


@pytest.mark.parametrize("method", [None, "br"])
def test_several_devices_train_one_network_only(method, tmp_path):
    with pytest.raises(ConfigError, match="one device"):
        train("newsroom", method, devices=2, out=tmp_path / "m")
    assert not list(tmp_path.iterdir())
