"""Windows has no POSIX-only modules, signals and calls: what works without them here.

The names are taken away after the libraries we depend on are imported: those look at the system.
"""

import os
import subprocess
import sys

WITHOUT_POSIX = """
import importlib, os, pkgutil, signal, socket, sys
import fastapi, gensim.models, matplotlib.figure, pyarrow.parquet, torch
import rich.progress, sklearn.linear_model, tokenizers, typer, uvicorn
for name in ("resource", "fcntl", "termios", "pwd", "grp"):
    sys.modules[name] = None
for name in ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGQUIT"):
    delattr(signal, name)
signal.Signals = [each for each in signal.Signals if each.name in ("SIGINT", "SIGTERM")]
for module, name in (
    (signal, "pthread_sigmask"), (signal, "setitimer"), (socket, "SO_REUSEPORT"),
    (os, "fork"), (os, "killpg"), (os, "getuid"), (os, "sched_getaffinity"), (os, "fchmod"),
    (os, "O_DIRECTORY"), (os, "O_NOFOLLOW"), (os, "getpgid"), (os, "setsid"), (os, "chown"),
):
    delattr(module, name)
"""


def run(code, *arguments):
    command = [sys.executable, "-c", WITHOUT_POSIX + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_models_are_trained_saved_and_used_without_posix(tmp_path):
    code = """
import json, setrnn
names = [each.name for each in pkgutil.walk_packages(setrnn.__path__, "setrnn.")]
for name in names:
    if name != "setrnn.__main__" and "ray_" not in name:
        importlib.import_module(name)
texts = ["the match ended in a draw", "shares fell on the market", "the bank bought the club"] * 8
labels = [["sport"], ["business"], ["business", "sport"]] * 8
rows = [{"text": text, "labels": each} for text, each in zip(texts, labels)]
folder = sys.argv[1]
with open(folder + "/train.jsonl", "w", encoding="utf-8") as stream:
    stream.writelines(json.dumps(row) + "\\n" for row in rows)
for method in ("br-support", "set-rnn"):  # the second model over the first
    setrnn.train(
        folder + "/train.jsonl", method=method, out=folder + "/model",
        settings=["vectors.source=none", "training.epochs=1"],
    )
    print(len(setrnn.load(folder + "/model").tag(texts[:3])))
"""
    assert run(code, tmp_path).split()[-1] == "3"


def test_commands_read_and_write_utf8_whatever_the_system_says():
    code = """
import sys
from setrnn.cli import main
sys.argv = ["setrnn", "--version"]
try:
    main()
except SystemExit:
    print(sys.stdin.encoding, sys.stdout.encoding, sys.stderr.encoding)
"""
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, input="", capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.split()[-3:] == ["utf-8"] * 3
