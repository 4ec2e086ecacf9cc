"""Threads that share the batches of a prediction."""

import threading

import numpy as np
import pytest
import torch
from test_recurrent import TOKENS, make_system

from setrnn.model.devices import thread_pool
from setrnn.systems import neural as neural_system


@pytest.fixture
def n_threads():
    """Three threads for torch, whatever the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


def test_pieces_are_worked_on_side_by_side_and_come_in_order(n_threads):
    together = threading.Barrier(n_threads, timeout=10)

    def work(piece):
        together.wait()  # passes only when all are here
        return piece, torch.get_num_threads()

    with thread_pool() as threads:
        assert list(threads.map(work, range(6))) == [(piece, 1) for piece in range(6)]
    assert torch.get_num_threads() == n_threads


def test_a_failure_ends_the_work_and_leaves_torch_its_threads(n_threads):
    seen = []

    def work(piece):
        seen.append(piece)
        if piece == 1:
            raise ValueError("piece 1")

    with pytest.raises(ValueError, match="piece 1"), thread_pool() as threads:
        list(threads.map(work, range(10_000)))
    assert len(seen) < 10_000
    assert torch.get_num_threads() == n_threads


@pytest.mark.parametrize("decoder", ["rnn", "sgm", "order-free"])
def test_the_number_of_threads_changes_no_bit(decoder, n_threads, monkeypatch):
    monkeypatch.setattr(neural_system, "MAX_DOCUMENTS_ON_CPU", 1)  # a batch a document
    system = make_system(decoder, beam_width=3)
    together = system.candidates(TOKENS, 2)
    torch.set_num_threads(1)
    alone = system.candidates(TOKENS, 2)
    np.testing.assert_array_equal(together.labels, alone.labels)
    np.testing.assert_array_equal(together.log_probs, alone.log_probs)


def test_a_single_batch_is_computed_by_one_thread(n_threads):
    system, seen = make_system("rnn", beam_width=2), []
    for _ in system.by_batch(TOKENS, lambda rows, encoding: seen.append(torch.get_num_threads())):
        assert torch.get_num_threads() == n_threads  # between batches, the user's own setting
    assert seen == [1]
    assert torch.get_num_threads() == n_threads
