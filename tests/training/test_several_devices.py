"""Two processes that train one network: the same bits as two threads, a stop, a kill, a resume."""

import os
import signal

import pytest
import torch
from tiny_runs import Run, same_bits

from setrnn.errors import StoppedError, TrainingError
from setrnn.model.devices import limited_threads
from setrnn.progress import Progress
from setrnn.training import launching

CPU, GPU = torch.device("cpu"), torch.device("cuda")
RARE_LABELS = "training.metric=label_f1"  # its rule needs thresholds


@pytest.fixture(scope="module")
def in_threads(tiny):
    """A run of one process that cuts each batch into two pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("setrnn.training.gradients.LEAST_WORK", 1)
        patch.setattr("setrnn.training.gradients.LEAST_DOCUMENTS", 1)
        with limited_threads(2):
            return Run(tiny, RARE_LABELS, rule="label-f1")


def resumed(tiny, folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("setrnn.training.gradients.LEAST_WORK", 1)
        patch.setattr("setrnn.training.gradients.LEAST_DOCUMENTS", 1)
        with limited_threads(2):
            return Run(tiny, RARE_LABELS, rule="label-f1", folder=folder, resume=True)


@pytest.mark.parametrize("after", ["Ctrl-C", "SIGKILL"])
def test_a_run_of_two_processes_ends_as_one_with_two_threads(
    tiny, in_threads, tmp_path, signal_at_step, monkeypatch, after
):
    """Stopped within the second epoch, or killed there, and resumed by one process."""
    children = []
    start = launching._children

    if after == "Ctrl-C":
        signal_at_step(6)
        expected = pytest.raises(StoppedError, match="epoch 2")
    else:
        expected = pytest.raises(TrainingError, match="2 of 2.*SIGKILL.*--resume")

    def kill(event):
        """Kill the other process in the second epoch."""
        if after == "SIGKILL" and isinstance(event, Progress) and event.epoch.number == 2:
            os.kill(children[0], signal.SIGKILL)

    def watched(*arguments):
        return Watched(start(*arguments))

    class Watched:
        def __init__(self, opened):
            self.opened = opened

        def __enter__(self):
            store, found = self.opened.__enter__()
            children.extend(each.pid for each in found.values())
            return store, found

        def __exit__(self, *error):
            return self.opened.__exit__(*error)

    monkeypatch.setattr(launching, "_children", watched)
    with expected:
        Run(tiny, RARE_LABELS, rule="label-f1", folder=tmp_path, watch=kill, n_devices=2)
    again = resumed(tiny, tmp_path)
    assert again.losses == in_threads.losses
    assert again.measures == in_threads.measures
    assert same_bits(again.weights, in_threads.weights)
