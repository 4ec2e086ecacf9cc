"""New processes in a moment: forked from a server that has imported torch, not spawned.

The server imports this module once per test process. What is started by it gets the environment,
the folder and the ignored Ctrl-C of the process that starts it, as a spawned process does.
"""

import multiprocessing
import os
import signal
from functools import cache
from multiprocessing import spawn
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_describe, _prepare = spawn.get_preparation_data, spawn.prepare


def describe(name):
    """Return what a new process needs to know."""
    is_deaf = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return {**_describe(name), "own": (dict(os.environ), os.getcwd(), is_deaf)}  # noqa: PTH109


def prepare(data):
    """Make the new process like the one that started it."""
    environment, folder, is_deaf = data.pop("own")
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN if is_deaf else signal.default_int_handler)
    _prepare(data)


@cache
def forks():
    """Return the context of processes that are forked from the server."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["forked"])
    spawn.get_preparation_data = describe
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
        patch.setenv("SETRNN_FORKED", "1")
        patch.setenv("TOKENIZERS_PARALLELISM", "false")  # threads do not survive a fork
        process = context.Process(target=int)  # starts the server
        process.start()
        process.join()
    return context


def import_all():
    """Import what commands and runs import."""
    import torch
    from typer.main import get_command  # noqa: F401

    import setrnn.comparison.run
    import setrnn.report.build
    import setrnn.tagging.learn.train  # noqa: F401
    from setrnn.cli.app import COMMANDS, load_command

    torch.set_num_threads(1)
    for name in COMMANDS:
        if name != "serve":
            load_command(name)


if os.environ.get("SETRNN_FORKED"):
    spawn.prepare = prepare
    import_all()
