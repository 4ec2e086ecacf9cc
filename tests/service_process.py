"""`setrnn serve` as a process of its own."""

import os
import re
import signal
import sys
import time
from contextlib import contextmanager

import httpx

from forked import forks


def _run(arguments, log):
    """Run `setrnn` in a forked process."""
    os.environ["COLUMNS"] = "200"
    stream = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["setrnn", *arguments]
    from setrnn.cli import main

    main()


class Forked:
    """A command in a forked process."""

    def __init__(self, arguments, log):
        log.touch()
        self._process = forks().Process(target=_run, args=(arguments, log))
        self._process.start()
        self.pid, self.kill = self._process.pid, self._process.kill

    def poll(self):
        return self._process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=None):
        self._process.join(seconds)
        return self._process.exitcode


class Process:
    """`setrnn serve` on a free port, until it is ready; its output goes to a file.

    `early` is a signal that is sent while it starts.
    """

    def __init__(self, log, *arguments, port=0, early=None):
        words = ["serve", *map(str, arguments), "--port", str(port), "--device", "cpu"]
        self.log = log
        self.process = Forked(words, log)
        if early is not None:
            self.wait_for("Loading")
            self.process.send_signal(early)
        self.wait_for("Ready")
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", self.printed)[1])
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60)

    @property
    def printed(self):
        return self.log.read_text()

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.printed:
            assert self.process.poll() is None, self.printed
            assert time.monotonic() < end, self.printed
            time.sleep(0.02)

    @property
    def n_waiting(self):
        page = self.client.get("/metrics").text
        return float(re.search(r"setrnn_queue_documents\S+ (\S+)", page)[1])

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def running(*arguments, **options):
    service = Process(*arguments, **options)
    try:
        yield service
    finally:
        service.process.kill()
        service.process.wait()
