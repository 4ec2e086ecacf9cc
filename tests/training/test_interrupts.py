import os
import signal
import threading

import pytest

from setrnn.training.interrupts import SIGNALS, polite_interrupts


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


def test_other_threads_are_never_asked():
    answers = []

    def work():
        with polite_interrupts() as is_asked:
            answers.append(is_asked())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [False]


def test_without_a_folder_ctrl_c_is_what_it_always_is(train, signal_at_step):
    signal_at_step(2)
    with pytest.raises(KeyboardInterrupt):
        train()


def test_a_second_ctrl_c_stops_at_once(train, signal_at_step, tmp_path):
    signal_at_step(2, signal.SIGINT, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(folder=tmp_path / "m.run")
    assert not list((tmp_path / "m.run").glob("last*"))
