"""A stopped run is resumed, and ends as one without a stop, or at once."""

import os
import signal

import pytest
from tiny_runs import N_TRAIN, same_bits

from setrnn.data.disk import select_prefix
from setrnn.errors import ConfigError, StoppedError
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.training.keeper import BEST
from setrnn.training.run_folder import LAST, SAVED, mark_saved, read_checkpoint, run_folder_of


@pytest.fixture
def stop(train, tmp_path, signal_at_step):
    """Stop a run by Ctrl-C after some steps, and return its folder."""

    def run(after=6, *settings, **more):
        folder = run_folder_of(tmp_path / "m")
        signal_at_step(after)
        with pytest.raises(StoppedError, match="--resume"):
            train(*settings, folder=folder, **more)
        return folder

    return run


@pytest.mark.parametrize("after", [1, 4, 6])
def test_a_stopped_run_ends_with_the_same_bits(stop, train, never_stopped, after):
    """Step 4 is the last of an epoch: the run is stopped before it is measured."""
    run = train(folder=stop(after), resume=True)
    assert same_bits(run.weights, never_stopped.weights)
    assert run.measures == never_stopped.measures


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        ("vinyals-sample", "seed=0"),
        ("sgm", "seed=0"),
        ("set-rnn", "training.average=0.9"),
    ],
)
def test_every_kind_of_state_is_restored(stop, train, method, setting):
    run = train(setting, folder=stop(6, setting, method=method), method=method, resume=True)
    whole = train(setting, method=method)
    assert same_bits(run.weights, whole.weights)
    assert run.measures == whole.measures


def test_stopping_while_measuring_measures_again(train, never_stopped, tmp_path, monkeypatch):
    search = RecurrentSystem.gather_by_source

    def signal_first(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return search(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(RecurrentSystem, "gather_by_source", signal_first)
        with pytest.raises(StoppedError, match=f"in epoch 1 after {N_TRAIN} documents"):
            train(folder=tmp_path / "m.run")
    run = train(folder=tmp_path / "m.run", resume=True)
    assert same_bits(run.weights, never_stopped.weights)
    assert run.measures == never_stopped.measures


def test_resuming_a_finished_run_trains_no_more(train, finished, never_stopped, monkeypatch):
    monkeypatch.setattr("setrnn.training.loop.Trainer._step", None)
    again = train(folder=finished, resume=True)
    assert same_bits(again.weights, never_stopped.weights)
    assert again.measures == never_stopped.measures
    assert train(folder=finished, resume=True).notes == again.notes


def test_a_finished_run_is_replaced_only_when_its_model_is_saved(train, finished):
    before = (finished / LAST).read_bytes()
    with pytest.raises(ConfigError, match=r"not written.*--resume.*remove"):
        train("seed=1", folder=finished)
    assert (finished / LAST).read_bytes() == before
    mark_saved(finished)
    train(folder=finished, resume=True)
    with pytest.raises(ConfigError, match="not written"):
        train(folder=finished)  # the model of the resumed run is not
    mark_saved(finished)
    other = train("seed=1", "training.epochs=1", folder=finished)
    assert len(other.losses) == 1
    assert not (finished / SAVED).exists()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("seed=1", "seed=0, not 1"),
        ("training.epochs=4", "training.epochs=2, not 4"),
        ("training.metric=label_f1", 'training.metric="instance_f1", not "label_f1"'),
        ({"method": "sgm"}, 'method="set-rnn", not "sgm"'),
        ({"data": "without_valid"}, "other data"),
    ],
)
def test_another_run_is_refused_by_what_differs(train, stopped, without_valid, setting, said):
    before = (stopped / LAST).read_bytes()
    settings, more = ((), setting) if isinstance(setting, dict) else ((setting,), {})
    if "data" in more:
        more = {"data": without_valid}
    with pytest.raises(ConfigError, match=said):
        train(*settings, folder=stopped, resume=True, **more)
    assert (stopped / LAST).read_bytes() == before


@pytest.mark.parametrize(
    "setting",
    [
        "training.learning_rate=0.1",
        "training.clip_norm=0.001",
        "training.precision=bfloat16",
    ],
)
def test_the_ways_out_of_a_bad_run_may_change(train, stopped, never_stopped, setting):
    run = train(setting, folder=stopped, resume=True)
    assert run.measures[0] == never_stopped.measures[0]
    assert run.measures[1] != never_stopped.measures[1]


def test_what_changes_no_weight_may_change(train, stopped, never_stopped):
    settings = ("training.checkpoint_minutes=0", "training.patience=2", "classical.l1=3")
    run = train(*settings, "training.valid_documents=50", folder=stopped, resume=True)
    assert same_bits(run.weights, never_stopped.weights)


def test_another_batch_size_starts_the_current_epoch_again(train, stopped):
    seen = []
    run = train("training.batch_size=4", folder=stopped, resume=True, watch=seen.append)
    assert seen[0].epoch.number == 2
    assert seen[0].n_done == N_TRAIN + 4
    assert len(run.losses) == 2
    # A second stop with another batch size works too.
    assert train("training.batch_size=16", folder=stopped, resume=True).losses == run.losses


def test_more_patience_continues_a_run_that_had_stopped_early(train, tmp_path, monkeypatch):
    values = [0.5, 0.1, 0.9]
    monkeypatch.setattr("setrnn.training.loop.validate", lambda *_: {"instance_f1": values.pop(0)})
    settings = ("training.epochs=3",)
    first = train(*settings, "training.patience=1", folder=tmp_path / "m.run")
    assert first.notes["best_epoch"] == 1
    assert len(first.losses) == 2
    more = train(*settings, folder=tmp_path / "m.run", resume=True)
    assert more.notes["best_epoch"] == 3


def test_a_budget_that_is_used_up_takes_the_best_epoch_and_the_run_can_still_be_resumed(
    train, stopped, never_stopped, monkeypatch
):
    before = (stopped / LAST).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("setrnn.training.loop.Trainer._step", None)
        run = train(folder=stopped, resume=True, max_seconds=0.001)
    best = select_prefix(BEST, read_checkpoint(stopped / LAST).tensors)
    assert same_bits(run.weights, best)
    assert run.measures == never_stopped.measures[:1]
    assert (stopped / LAST).read_bytes() == before
    assert same_bits(train(folder=stopped, resume=True).weights, never_stopped.weights)
