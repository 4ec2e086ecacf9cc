"""Algorithm 2: what is trained, which epoch is the best, and when training ends."""

import pytest
import torch
from tiny_runs import N_TRAIN, same_bits, tiny_config

from brute_force_sequences import network_of
from setrnn.config import TrainingSettings
from setrnn.data.batches import make_batch
from setrnn.errors import StoppedError
from setrnn.methods import METHODS, find_method
from setrnn.metrics import MEASURES
from setrnn.training.loop import (
    Trainer,
    is_best,
    is_finished,
    is_out_of_time,
    list_training_documents,
)
from setrnn.training.run_folder import Position
from setrnn.training.start import Start, TrainOptions

TWO_PHASES = [name for name, method in METHODS.items() if method.first_method]


def test_the_same_seed_gives_the_same_bits_and_another_others(train, never_stopped):
    again, other = train(), train("seed=1")
    assert same_bits(again.weights, never_stopped.weights)
    assert again.measures == never_stopped.measures
    assert not same_bits(other.weights, never_stopped.weights)


@pytest.mark.parametrize("method", ["set-rnn", "sgm", "set-rnn-exact", "sigmoid"])
def test_every_decoder_learns_in_bfloat16(train, method):
    run = train(
        "training.precision=bfloat16",
        "training.epochs=2",
        "training.learning_rate=0.02",
        "training.decay=none",
        "model.dropout=0",
        "model.word_dropout=0",
        method=method,
    )
    assert run.losses[-1] < run.losses[0]
    assert all(each.dtype == torch.float32 for each in run.weights.values())


def test_gradients_are_clipped_to_the_norm(tiny):
    norms = {}
    for clip in (0, 0.01):
        config = tiny_config(f"training.clip_norm={clip}", "model.dropout=0")
        trainer, pieces = _one_step(tiny, config)
        trainer.optimizer.zero_grad = lambda: None
        trainer._step(pieces)
        norms[clip] = torch.nn.utils.get_total_norm(
            [each.grad for each in trainer.network.parameters()]
        )
    assert norms[0] > 0.1
    assert norms[0.01] == pytest.approx(0.01, rel=1e-3)


def _one_step(prepared, config):
    torch.manual_seed(0)
    vectors = torch.randn(prepared.encoder.n_tokens + len(prepared.labels), 8)
    n_tokens = prepared.encoder.n_tokens
    network = network_of(vectors[:n_tokens], vectors[n_tokens:], config.model)
    method, cpu = find_method("set-rnn"), torch.device("cpu")
    documents = list_training_documents(prepared, config)
    trainer = Trainer(network, prepared, config, method, cpu, documents, TrainOptions())
    train = prepared.split("train")
    rows = train.labels.lengths.argsort()[-8:]  # large sets: they are searched
    assert train.labels.lengths[rows].min() > 2
    pieces = [make_batch(train.tokens, train.labels, rows)]
    return trainer, pieces


@pytest.mark.parametrize("method", TWO_PHASES)
def test_vinyals_systems_start_from_a_trained_uniform_network(train, method):
    first = train(method="vinyals-uniform")
    run = train("training.learning_rate=1e-12", method=method)
    own = find_method(method).objective
    assert [row["objective"] for row in run.notes["epochs"]] == [own, own]
    slow = train("training.learning_rate=1e-12", method="vinyals-uniform")
    assert [row["loss"] for row in run.notes["first_epochs"]] == slow.losses
    start = Start(first.weights)
    started = train("training.learning_rate=1e-12", method=method, start=start)
    for name, weight in started.weights.items():
        torch.testing.assert_close(weight, first.weights[name], atol=1e-6, rtol=0)
    assert started.notes.keys().isdisjoint({"first_epochs"})


@pytest.mark.parametrize("n_steps", [6, 14])
def test_a_run_stopped_before_or_after_its_start_is_resumed(
    train, tmp_path, signal_at_step, n_steps
):
    whole = train(method="vinyals-max")
    signal_at_step(n_steps)
    with pytest.raises(StoppedError):
        train(folder=tmp_path / "m.run", method="vinyals-max")
    again = train(folder=tmp_path / "m.run", method="vinyals-max", resume=True)
    assert same_bits(again.weights, whole.weights)
    assert len(again.notes["first_epochs"]) == 2


def test_the_model_is_that_of_the_best_epoch(train, monkeypatch, tmp_path):
    values = []
    monkeypatch.setattr("setrnn.training.loop.validate", lambda *_: {"hamming_loss": values.pop()})
    settings = ("training.metric=hamming_loss", "training.decay=none", "training.warm_up=0")
    values[:] = [0.1]
    one = train(*settings, "training.epochs=1")
    for folder in (None, tmp_path / "m.run"):
        values[:] = [0.3, 0.1, 0.2]  # from behind: the second epoch is the best
        run = train(*settings, "training.epochs=3", folder=folder)
        values[:] = [0.1, 0.2]
        two = train(*settings)
        assert run.notes["best_epoch"] == 2
        assert same_bits(run.weights, two.weights)
        assert not same_bits(run.weights, one.weights)


def test_without_a_valid_part_the_last_epoch_is_taken(train, without_valid, tmp_path):
    settings = ("training.patience=1",)
    run = train(*settings, data=without_valid)
    kept = train(*settings, data=without_valid, folder=tmp_path / "m.run")
    assert len(run.losses) == 2
    assert run.notes["best_epoch"] == 0
    assert same_bits(run.weights, kept.weights)
    again = train(*settings, data=without_valid, folder=tmp_path / "m.run", resume=True)
    assert same_bits(run.weights, again.weights)


def test_those_who_watch_see_every_epoch_and_never_go_back(train):
    seen = []
    run = train(watch=seen.append)
    ends = [each.epoch for each in seen if each.epoch.scores is not None]
    assert [each.number for each in ends] == [1, 2]
    assert [each.loss for each in ends] == run.losses
    assert {each.n_total for each in seen} == {2 * N_TRAIN}
    done = [each.n_done for each in seen]
    assert done == sorted(done)
    assert done[-1] == 2 * N_TRAIN
    assert {"measuring", "set-probability"} == {each.epoch.activity for each in seen}


def test_a_better_epoch_has_more_f1_or_less_loss():
    first, later = Position(), Position(best_epoch=1, best_value=0.5)
    for metric in MEASURES:
        assert is_best({metric: 0.0}, first, metric)
        assert not is_best({metric: 0.5}, later, metric)
        assert is_best({metric: 0.6}, later, metric) == (metric != "hamming_loss")
        assert not is_best({}, first, metric)


def test_training_ends_after_all_epochs_or_when_patience_is_over():
    settings = TrainingSettings(epochs=5, patience=2)
    assert is_finished(Position(epoch=5, best_epoch=5), settings)
    assert not is_finished(Position(epoch=2, best_epoch=1), settings)
    assert is_finished(Position(epoch=3, best_epoch=1), settings)
    assert not is_finished(Position(epoch=3, best_epoch=0), settings)
    assert not is_finished(Position(epoch=4, best_epoch=1), TrainingSettings(epochs=5))


def test_no_epoch_begins_that_would_exceed_the_time():
    assert not is_out_of_time(Position(epoch=0), 100.0, 1.0)
    assert not is_out_of_time(Position(epoch=2), 100.0, None)
    assert not is_out_of_time(Position(epoch=2), 100.0, 150.0)
    assert is_out_of_time(Position(epoch=2), 100.0, 149.0)
