"""Work for processes of the pool: at module level, so that another process finds it."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from setrnn.errors import DataError
from setrnn.progress import Progress, log


def count(number, on_progress):
    log.info("not for the parent")
    on_progress(Progress("counting", 1, 2, detail="one"))
    return number + 1


def read_threads(on_progress):
    return os.environ["OMP_NUM_THREADS"]


def wait_for_file(file, on_progress):
    while not file.exists():
        time.sleep(0.01)


def write_file(file, on_progress):
    file.touch()


def refuse(on_progress):
    raise DataError("train.jsonl is empty. Give another.")


def break_down(on_progress):
    sys.stdout.write("a library prints\n")
    raise ZeroDivisionError("over\nhere")


def vanish(on_progress):
    os._exit(7)


def be_killed(on_progress):
    os.kill(os.getpid(), signal.SIGKILL)


def save_when_stopped(file: Path, on_progress):
    """As training does: save first, then end."""
    try:
        on_progress(Progress("training", 1, 10))
        threading.Event().wait()
    except KeyboardInterrupt:
        file.write_text("saved")
        raise
