"""Work for processes of the pool: module level, so that another process finds it."""

import os
import signal
import sys
import time
from pathlib import Path

from setrnn.errors import DataError


def count(number, on_progress):
    on_progress("counting", 0.5)
    return number + 1


def tell_threads(on_progress):
    return os.environ["OMP_NUM_THREADS"]


def refuse(on_progress):
    raise DataError("train.jsonl is empty. Give another.")


def break_down(on_progress):
    sys.stdout.write("a library talks\n")
    raise ZeroDivisionError("over\nhere")


def vanish(on_progress):
    os._exit(7)


def be_killed(on_progress):
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(seconds, on_progress):
    time.sleep(seconds)


def save_when_stopped(file: Path, on_progress):
    """As training does: finish, save, and only then give way."""
    try:
        on_progress("training", 0.1)
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(0.2)
        file.write_text("saved")
        raise
