"""Every failure is one clear line, and loses nothing that was saved."""

import os
import signal

import pytest
import torch
from tiny_runs import same_bits

from setrnn.errors import DataError, ModelError, TrainingError
from setrnn.methods import find_method
from setrnn.systems.recurrent import OrderFreeSystem
from setrnn.systems.registry import find_system
from setrnn.training.keeper import SIGNALS, polite_interrupts
from setrnn.training.loop import Trainer
from setrnn.training.run_folder import LAST, read_checkpoint

EVERY_BATCH = "training.checkpoint_minutes=0"


@pytest.fixture
def fail_at_step(monkeypatch):
    """Do something in the place of a training step, counted from 1; give back the true ones."""
    true_step = Trainer._step

    def arrange(n, instead):
        steps = iter(range(1, 1_000_000))

        def step(self, *arguments):
            return instead(self) if next(steps) == n else true_step(self, *arguments)

        monkeypatch.setattr(Trainer, "_step", step)

    yield arrange
    monkeypatch.setattr(Trainer, "_step", true_step)


def _loss_without_number(trainer):
    return torch.tensor(torch.nan)


def _weight_without_number(trainer):
    with torch.no_grad():
        next(trainer.network.decoder.parameters())[0] = torch.inf
    return torch.tensor(1.0)


def _out_of_memory(trainer):
    raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")


def _no_handle(trainer):
    raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")


@pytest.mark.parametrize("what", [_loss_without_number, _weight_without_number])
@pytest.mark.parametrize("step", [1, 4, 6])
def test_a_state_that_is_not_finite_is_never_saved(train, fail_at_step, tmp_path, what, step):
    """Step 4 is the last of an epoch."""
    folder = tmp_path / "m.run"
    fail_at_step(step, what)
    said = r"not finite in epoch [12].*training.learning_rate \(now 0.002\)"
    with pytest.raises(TrainingError, match=said):
        train(EVERY_BATCH, folder=folder)
    assert (folder / LAST).exists() == (step > 1)
    if step > 1:
        tensors = read_checkpoint(folder / LAST).tensors
        assert all(each.isfinite().all() for each in tensors.values())


@pytest.mark.parametrize("what", [_out_of_memory, _no_handle])
@pytest.mark.parametrize("step", [1, 6])
def test_a_full_gpu_names_the_setting_and_a_smaller_batch_goes_on(
    train, fail_at_step, tmp_path, what, step
):
    folder = tmp_path / "m.run"
    fail_at_step(step, what)
    with pytest.raises(TrainingError, match=r"training.batch_size \(now 8\)"):
        train(EVERY_BATCH, folder=folder)
    fail_at_step(0, None)
    seen = []
    run = train("training.batch_size=2", folder=folder, resume=True, watch=seen.append)
    assert seen[0].epoch.number == (1 if step == 1 else 2)
    assert len(run.losses) == 2


def test_a_full_gpu_while_measuring_says_so(train, monkeypatch, never_stopped, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr("setrnn.training.loop.validate", _out_of_memory_too)
        with pytest.raises(TrainingError, match=r"valid.*memory"):
            train(EVERY_BATCH, folder=tmp_path / "m.run")
    run = train(folder=tmp_path / "m.run", resume=True)
    assert same_bits(run.weights, never_stopped.weights)


def _out_of_memory_too(*_):
    raise torch.cuda.OutOfMemoryError("CUDA out of memory.")


def test_sets_longer_than_the_step_limit_name_document_and_setting(train, tiny, tmp_path):
    sizes = tiny.split("train").labels.lengths
    longest = int(sizes.argmax())
    name = tiny.split("train").ids(longest, longest + 1)[0]
    said = f"'{name}'.* {sizes.max()} labels.*max_labels={sizes.max()}"
    with pytest.raises(DataError, match=said):
        train(f"model.max_labels={sizes.max() - 1}", folder=tmp_path / "m.run")
    assert not (tmp_path / "m.run").exists()
    assert train(f"model.max_labels={sizes.max()}", "training.epochs=1").losses


def test_a_folder_of_someone_else_is_left_alone(train, tmp_path):
    folder = tmp_path / "m.run"
    folder.mkdir()
    (folder / "diary.txt").write_text("mine")
    for resume in (False, True):
        with pytest.raises(ModelError, match=r"m\.run.*not a run"):
            train(folder=folder, resume=resume)
    assert (folder / "diary.txt").read_text() == "mine"


def test_sets_too_large_to_be_summed_are_refused_before_training(train, monkeypatch):
    monkeypatch.setattr(OrderFreeSystem, "max_training_labels", 2)
    with pytest.raises(DataError, match=r"'set-rnn-exact'.* at most 2 .*set-rnn"):
        train(method="set-rnn-exact")
    assert find_system(find_method("set-rnn")).max_training_labels is None


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_the_second_stops_at_once(number):
    before = [signal.getsignal(each) for each in SIGNALS]
    with polite_interrupts() as is_asked:
        assert not is_asked()
        os.kill(os.getpid(), number)
        assert is_asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with polite_interrupts() as is_asked:
            os.kill(os.getpid(), signal.SIGINT)
            assert not is_asked()
    finally:
        signal.signal(signal.SIGINT, before)


def test_without_a_folder_ctrl_c_is_what_it_always_is(train, signal_at_step):
    signal_at_step(2)
    with pytest.raises(KeyboardInterrupt):
        train()
