"""`setrnn serve` as a process of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx

PROGRAM = (sys.executable, "-m", "setrnn")


class Process:
    """`setrnn serve` on a free port, until it is ready; its output goes to a file.

    `early` is a signal that is sent while it starts; `program` is another one than that of these
    sources.
    """

    def __init__(self, log, *arguments, port=0, early=None, program=PROGRAM, env=os.environ):
        command = [*program, "serve", *map(str, arguments)]
        self.log = log
        with log.open("w") as stream:
            self.process = subprocess.Popen(
                [*command, "--port", str(port), "--device", "cpu"],
                stdout=stream,
                stderr=stream,
                env={**env, "COLUMNS": "200"},
            )
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
