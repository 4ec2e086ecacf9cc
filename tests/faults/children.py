"""Run commands in forked children, and let them be killed or stopped at any file-system call."""

import json
import mmap
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from forked import forks
from setrnn.errors import SetRNNError

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# The audited calls that change files, and one that is not audited. Between two of them, a kill
# leaves what it would leave at the second.
CHANGING = {"open", "fcntl.flock", "fcntl.lockf", "os.fsync", "os.truncate", "os.chmod"}
CHANGING |= {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"}
HUNG = "hung"
TEMPORARY = "temporary"  # the folder in each world for temporary files
SECONDS = 60.0  # after which a child hangs


@dataclass(frozen=True)
class Call:
    """A call that changes a file of the world."""

    event: str
    path: str

    @property
    def kind(self):
        """The same for calls that differ only in numbers and random names."""
        return self.event, re.sub(r"[0-9a-f]{8,}|\d+", "N", self.path)


@dataclass(frozen=True)
class Ended:
    """The end of a child: its exit code, the signal below zero, or HUNG."""

    code: int | str
    output: str
    seconds: float
    calls: list[Call] = field(default_factory=list, repr=False)

    @property
    def is_done(self):
        return self.code == 0

    @property
    def is_refused(self):
        """Whether it failed as a command may fail: in one line that says why."""
        return self.code in (1, 2, 130) and not self.is_surprised

    @property
    def is_surprised(self):
        return "Traceback" in self.output or "unexpected " in self.output

    @property
    def last_line(self):
        lines = self.output.strip().splitlines()
        return lines[-1][:300] if lines else ""

    def __str__(self):
        return f"exit {self.code}: {self.last_line}"


class Child:
    """A command (or a function) in a forked child, in the folder of its world.

    Args:
        world: the folder it works in, with its cache.
        work: the arguments of `setrnn`, or a function without arguments.
        trap: the number of a call, from 1, and the signal that it gets there.
        before: functions to call first, such as those that limit it.
    """

    def __init__(self, world, work, trap=None, before=()):
        context = forks()
        self._calls = Path(notes_folder().name, f"{time.monotonic_ns()}.calls")
        self._printed = bytearray()
        printed, theirs = context.Pipe(duplex=False)  # a pipe has no disk to fill
        self._start = time.monotonic()
        self.process = context.Process(
            target=_work, args=(world, work, theirs, self._calls, trap, tuple(before))
        )
        self.process.start()
        theirs.close()
        self._reader = threading.Thread(target=self._read, args=(printed,), daemon=True)
        self._reader.start()

    @property
    def output(self):
        return self._printed.decode(errors="replace")

    def _read(self, printed):
        while block := os.read(printed.fileno(), 1 << 16):
            self._printed += block

    def kill(self, number=signal.SIGKILL, alone=False):
        """Send a signal to the child, and to its own children."""
        with suppress(ProcessLookupError):
            (os.kill if alone else os.killpg)(self.process.pid, number)

    def wait_until_stopped(self, seconds=SECONDS):
        """Wait until the child has stopped at its trap, or ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.is_alive():
            with suppress(OSError):
                status = Path(f"/proc/{self.process.pid}/stat").read_text()
                if status.rpartition(")")[2].split()[0] == "T":
                    return
            time.sleep(0.002)

    def wait(self, seconds=SECONDS):
        """Wait for its end; kill it and its own children if it hangs."""
        self.process.join(seconds)
        code = self.process.exitcode
        if code is None:
            code = HUNG
            self.kill()
            self.process.join()
        took = time.monotonic() - self._start
        self._reader.join(1)  # children that outlive it may hold the pipe open
        calls = []
        if self._calls.exists():
            lines = self._calls.read_text().split("\n")[:-1]  # the last may be cut short
            calls = [Call(*json.loads(line)) for line in lines]
            self._calls.unlink()
        return Ended(code, self.output, took, calls)


def run(world, work, seconds=SECONDS, **options):
    """Run a command in a child to its end."""
    return Child(world, work, **options).wait(seconds)


def choose_calls(calls):
    """Return the numbers of the first and the last call of each kind."""
    first, last = {}, {}
    for number, call in enumerate(calls, 1):
        first.setdefault(call.kind, number)
        last[call.kind] = number
    return sorted({*first.values(), *last.values()})


@cache
def notes_folder():
    """Return a folder for notes of this process, which are not part of any world."""
    return tempfile.TemporaryDirectory(prefix="faults-")


def _work(world, work, output, calls, trap, before):
    os.setsid()  # a signal to the group reaches its children, and not the server
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    output.close()
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(world)
    os.environ |= {"SETRNN_CACHE": str(world / "cache"), "COLUMNS": "200"}
    os.environ["TMPDIR"] = str(world / TEMPORARY)
    tempfile.tempdir = None  # it is chosen again
    find = multiprocessing.get_context  # a new interpreter for each run of `compare` takes seconds
    multiprocessing.get_context = lambda kind=None: find("fork" if kind == "spawn" else kind)
    code = 99
    try:
        watch(world, calls, trap)
        for each in before:
            each()
        code = _perform(work)
    except BaseException:  # noqa: BLE001 (shown as a command would never show it)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _perform(work):
    if isinstance(work, Callable):
        try:
            work()
        except SetRNNError as error:
            sys.stderr.write(f"error: {error}\n")
            return 1
        return 0
    from setrnn.cli import main

    sys.argv = ["setrnn", *work]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 98


def watch(world, notes, trap):
    """Note every call that changes a file of the world, and spring the trap."""
    here = str(world)
    count = mmap.mmap(-1, 8)  # shared with forked children
    log = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def hook(event, arguments):
        if event not in CHANGING or not arguments:
            return
        path = arguments[0]
        if isinstance(path, int):
            path = f"/proc/self/fd/{path}"
            path = os.readlink(path) if os.path.lexists(path) else ""  # noqa: PTH115
        path = os.fsdecode(path or "/")
        if event == "open" and not (arguments[2] or 0) & WRITING:
            return
        if path.startswith("/") and not path.startswith(here):
            return
        number = int.from_bytes(count[:8], "little") + 1
        count[:8] = number.to_bytes(8, "little")
        with suppress(OSError):  # a limit on the size of files
            os.write(log, (json.dumps([event, path.removeprefix(here)]) + "\n").encode())
        if trap is not None and number == trap[0]:
            os.killpg(0, trap[1])

    flush = os.fsync

    def fsync(stream):
        number = stream if isinstance(stream, int) else stream.fileno()
        hook("os.fsync", (number,))
        flush(stream)

    os.fsync = fsync
    sys.addaudithook(hook)


def descendants(pid):
    """The processes that a process has started, and those that they have."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    for child in children.read_text().split() if children.exists() else ():
        yield int(child)
        yield from descendants(int(child))
