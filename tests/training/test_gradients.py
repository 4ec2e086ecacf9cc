"""Pieces of a batch, computed in threads: the same gradient, and the same bits each time."""

import numpy as np
import pytest
import torch
from tiny_runs import Run, same_bits, tiny_config

from setrnn.methods import METHODS, find_method
from setrnn.model.devices import limited_threads
from setrnn.training.gradients import LEAST_DOCUMENTS, Gradients
from setrnn.training.start import TrainOptions, make_trainer

WITHOUT_NOISE = ("model.dropout=0", "model.word_dropout=0")
CPU = torch.device("cpu")
LARGE = "training.batch_size=24"
# greedy-order-rnn is vinyals-max-direct with a beam of one.
NETWORKS = [
    name for name, each in METHODS.items() if each.is_network and name != "greedy-order-rnn"
]


def trainer_of(prepared, n_threads, *settings, method="set-rnn"):
    with limited_threads(n_threads):
        config = tiny_config(LARGE, *settings)
        trainer = make_trainer(find_method(method), prepared, config, TrainOptions("cpu"))
    trainer.network.train()
    trainer.gradients.least_documents = LEAST_DOCUMENTS  # though the network is tiny
    return trainer


def gradients(trainer, n_batches=1, in_threads=False):
    """The loss and the gradients of the last of some batches."""
    torch.manual_seed(0)
    rows = np.arange(24)

    def compute():
        for _ in range(n_batches):
            loss = trainer.gradients.compute(trainer._make_batch(rows))
        return [loss, *(each.grad for each in trainer.network.parameters())]

    if not in_threads:
        return compute()
    with trainer.gradients.threads():
        return compute()


@pytest.mark.parametrize("method", ["set-rnn", "set-rnn-exact", "sigmoid", "sgm"])
def test_the_pieces_of_a_batch_have_its_gradient(tiny, method):
    whole = gradients(trainer_of(tiny, 1, *WITHOUT_NOISE, method=method))
    trainer = trainer_of(tiny, 3, *WITHOUT_NOISE, method=method)
    assert len(trainer._make_batch(np.arange(24))) == 3
    torch.testing.assert_close(gradients(trainer), whole, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", NETWORKS)
def test_threads_change_no_bit(tiny, method):
    """The first batch is never computed in threads."""
    alone = gradients(trainer_of(tiny, 3, method=method), n_batches=2)
    shared = gradients(trainer_of(tiny, 3, method=method), n_batches=2, in_threads=True)
    assert all(torch.equal(*pair) for pair in zip(alone, shared, strict=True))


def test_networks_of_ours_draw_in_threads_and_other_parts_in_order(tiny):
    for other, in_order in ((False, False), (True, True)):
        trainer = trainer_of(tiny, 3)
        if other:  # dropout that knows no generator
            trainer.network.decoder.dropout = torch.nn.Dropout(0.5)
            trainer.network.decoder.dropout.generator = None
        first = gradients(trainer, n_batches=3, in_threads=True)
        assert trainer.gradients._draws_in_order == in_order
        second = gradients(trainer, n_batches=3, in_threads=True)
        assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))


def test_a_piece_is_not_too_small_and_has_its_share_of_large_sets():
    with limited_threads(4):
        cutter = Gradients(torch.nn.Linear(1200, 1200), CPU, None, 3)
        small = Gradients(torch.nn.Linear(1, 1), CPU, None, 3)
    sizes = np.repeat([1, 7], 16)
    pieces = cutter.cut(np.arange(100, 132), sizes)
    assert sorted(np.concatenate(pieces).tolist()) == list(range(100, 132))
    assert {int(sizes[piece - 100].sum()) for piece in pieces} == {sizes.sum() // 4}
    few = np.arange(2 * LEAST_DOCUMENTS + 1)
    assert [len(each) for each in cutter.cut(few, few)] == [LEAST_DOCUMENTS + 1, LEAST_DOCUMENTS]
    assert [len(each) for each in cutter.cut(few[:3], few[:3])] == [3]
    assert len(small.cut(few, few)) == 1


def test_training_in_threads_is_repeated_bit_by_bit(tiny, monkeypatch):
    monkeypatch.setattr("setrnn.training.gradients.LEAST_WORK", 1)
    with limited_threads(2):
        first, second = (Run(tiny, LARGE, method="set-rnn") for _ in range(2))
        assert torch.get_num_threads() == 2, "afterwards"
    assert same_bits(first.weights, second.weights)
    assert first.losses == second.losses
