"""Run by test_model_folder.py: save over a model, be killed, and see what is left.

`python killed_saves.py FOLDER` expects two models there, `a` and `b`, and kills a process that
saves one over the other, first at every call that touches the file system, then at random
moments; then one that replaces a calibration. It prints the number of kills, and fails if a model
cannot be loaded after one. It does not import torch: forks are then quick.
"""

import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not survive a fork

from setrnn.data.model_folder import load_model, read_version, save_calibration, save_model

TOUCHING = ("open", "os.", "shutil.", "tempfile.")
N_RANDOM = 20


def is_same(first, second):
    """Whether two models have the same method and the same arrays."""
    return (
        first.method == second.method
        and first.arrays.keys() == second.arrays.keys()
        and all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)
    )


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def start_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def was_killed(child):
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def do_and_die(n, work):
    """Save, and be killed at the n-th audited event that touches the file system."""
    events = iter(range(1, 1_000_000))

    def hook(event, _arguments):
        if event.startswith(TOUCHING) and next(events) == n:
            die()

    sys.addaudithook(hook)
    work()


def main(folder):
    first, second = known = [load_model(folder / "a"), load_model(folder / "b")]
    assert not is_same(*known), "the test needs two models that differ"
    target = folder / "killed" / "model"
    seen = set()

    def check():
        found = load_model(target)
        matches = [is_same(found, each) for each in known]
        assert any(matches), "neither the old model nor the new one"
        seen.add(matches.index(True))

    n_events = 0
    is_killed = True
    while is_killed:
        n_events += 1
        save_model(target, first, "0")
        save = partial(save_model, target, second, "0")
        is_killed = was_killed(start_child(partial(do_and_die, n_events, save)))
        check()
    assert seen == {0, 1}, "the kills must reach both sides of the exchange"

    def save_forever():
        while True:
            save_model(target, second, "0")
            save_model(target, first, "0")

    generator = random.Random(0)
    for _ in range(N_RANDOM):
        child = start_child(save_forever)
        time.sleep(generator.uniform(0.001, 0.05))
        os.kill(child, signal.SIGKILL)
        assert was_killed(child)
        check()
    save_model(target, first, "0")
    check()
    n_kills = n_events - 1 + N_RANDOM + kill_calibrations(target)
    check()
    sys.stdout.write(f"{n_kills}\n")


def kill_calibrations(target):
    """Kill a process that replaces the calibration; the old or the new one is there."""
    n, is_killed, seen = 0, True, set()
    while is_killed:
        n += 1
        version = save_calibration(target, {"n_documents": 0}, read_version(target))
        save = partial(save_calibration, target, {"n_documents": n}, version)
        is_killed = was_killed(start_child(partial(do_and_die, n, save)))
        found = load_model(target).calibration["n_documents"]
        assert found in (0, n), "neither the old calibration nor the new one"
        seen.add(found > 0)
    assert seen == {False, True}, "the kills must reach both sides of the renaming"
    save_calibration(target, {"n_documents": 0}, read_version(target))
    left = {file.name for file in target.iterdir() if file.name.startswith(".")}
    assert not left, left
    return n - 1


if __name__ == "__main__":
    main(Path(sys.argv[1]))
