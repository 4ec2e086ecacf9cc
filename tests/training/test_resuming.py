"""A resumed run may get another number of epochs, or end at once with its best epoch."""

import pytest
from tiny_runs import same_bits, tiny_config

from setrnn.errors import ConfigError, StoppedError, TrainingError
from setrnn.training import loop
from setrnn.training.keeper import MODEL
from setrnn.training.resuming import keep_epochs
from setrnn.training.run_folder import LAST, read_checkpoint

N_BATCHES = 4


@pytest.fixture
def shares(monkeypatch):
    """The share of the training that is done at each step, by which the learning rate is set."""
    seen, original = [], loop.set_learning_rate

    def spy(optimizer, share, settings):
        seen.append(share)
        original(optimizer, share, settings)

    monkeypatch.setattr(loop, "set_learning_rate", spy)
    return seen


def test_more_epochs_continue_on_their_own_schedule(train, stopped, never_stopped, shares):
    notes = []
    run = train("training.epochs=4", folder=stopped, resume=True, watch=notes.append)
    assert "4 epochs instead of 2" in notes[0].text
    assert len(run.losses) == 4
    assert run.measures[0] == never_stopped.measures[0]
    steps = range(6, 4 * N_BATCHES)  # it was stopped after 6
    assert shares == [pytest.approx((step + 0.5) / (4 * N_BATCHES)) for step in steps]


def test_a_finished_run_gets_more_epochs(train, finished, never_stopped):
    run = train("training.epochs=3", folder=finished, resume=True)
    assert run.measures[:2] == never_stopped.measures
    assert len(run.losses) == 3
    assert train("training.epochs=3", folder=finished, resume=True).losses == run.losses


def test_with_fewer_epochs_a_run_ends_where_they_are_finished(train, stopped, shares):
    run = train("training.epochs=1", folder=stopped, resume=True)
    assert (len(run.losses), run.notes["best_epoch"], shares) == (1, 1, [])


def test_finished_epochs_are_not_dropped(train, finished):
    before = (finished / LAST).read_bytes()
    with pytest.raises(ConfigError, match=r"2 epochs already.*--finish-now"):
        train("training.epochs=1", folder=finished, resume=True)
    assert (finished / LAST).read_bytes() == before
    assert train("training.epochs=1", folder=finished, resume=True, finish_now=True).losses


def test_a_finished_epoch_keeps_its_objective(train, tmp_path):
    arguments = {"method": "vinyals-sample", "folder": tmp_path / "m.run"}
    train("training.random_start=shared", **arguments)
    with pytest.raises(ConfigError, match=r"epoch 2 .* random-order"):
        train("training.epochs=4", "training.random_start=shared", resume=True, **arguments)


def test_without_a_number_the_run_keeps_its_own(stopped, tmp_path):
    unset = tiny_config("training.epochs=0")
    assert keep_epochs(unset, stopped).training.epochs == 2
    assert keep_epochs(unset, tmp_path / "none") == unset
    assert keep_epochs(tiny_config("training.epochs=7"), stopped).training.epochs == 7


def test_finish_now_takes_the_best_epoch_and_the_run_can_still_be_resumed(
    train, stopped, never_stopped, monkeypatch
):
    before = {file.name: file.read_bytes() for file in stopped.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr("setrnn.training.loop.Trainer._step", None)
        run = train(folder=stopped, resume=True, finish_now=True)
    best = read_checkpoint(stopped / "best-epoch-1.safetensors").tensors
    assert same_bits(run.weights, {name.removeprefix(MODEL): best[name] for name in best})
    assert run.measures == never_stopped.measures[:1]
    assert {file.name: file.read_bytes() for file in stopped.iterdir()} == before
    assert same_bits(train(folder=stopped, resume=True).weights, never_stopped.weights)


def test_without_a_valid_part_finish_now_takes_the_last_weights(
    train, without_valid, tmp_path, signal_at_step
):
    folder = tmp_path / "m.run"
    signal_at_step(6)
    with pytest.raises(StoppedError):
        train(data=without_valid, folder=folder)
    run = train(data=without_valid, folder=folder, resume=True, finish_now=True)
    last = read_checkpoint(folder / LAST).tensors
    assert all((last[f"{MODEL}{name}"] == each).all() for name, each in run.weights.items())


def test_there_must_be_a_run_to_finish(train, tmp_path):
    with pytest.raises(TrainingError, match="no run at"):
        train(folder=tmp_path / "m.run", resume=True, finish_now=True)


@pytest.mark.parametrize(
    ("method", "n_steps", "words"),
    [("set-rnn", 2, "no finished epoch"), ("vinyals-sample", 6, "epochs of vinyals-uniform")],
)
def test_without_an_epoch_of_its_own_there_is_nothing_to_finish(
    train, tmp_path, signal_at_step, method, n_steps, words
):
    signal_at_step(n_steps)
    with pytest.raises(StoppedError):
        train(folder=tmp_path / "m.run", method=method)
    with pytest.raises(TrainingError, match=rf"{words}.*--resume"):
        train(folder=tmp_path / "m.run", method=method, resume=True, finish_now=True)
