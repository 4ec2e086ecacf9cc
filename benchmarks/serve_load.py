"""The service under load compared with offline prediction: documents/s and latencies, on loopback.

    python benchmarks/serve_load.py MODEL [--rule RULE] [--seconds 10]

The service runs in a process of its own, started by `setrnn serve`. Clients send requests from
sockets, each after the previous answer (a tenth of a core). Before and after each load, offline
prediction is measured: `Tagger.tag_stream` on the same texts with all cores, as `setrnn predict`
does. CPU time per document is that of the service; the share of CPU time is offline's, relative to
that of service and clients together: on cores that other programs use, it says more than the speed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from harness import make_parser, print_head, print_row
from setrnn import Tagger, load
from setrnn.data import newsroom

N_CLIENTS, N_TEXTS = (1, 8, 64), (1, 16)
WARM_UP = 2.0  # seconds


@dataclass
class Load:
    """The answers to a number of clients."""

    n_clients: int
    n_texts: int  # per request
    seconds: float = 0.0
    cores: float = 0.0  # used by the service
    client_cores: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def documents_per_second(self) -> float:
        """The documents answered per second."""
        return self.statuses[200] * self.n_texts / self.seconds

    @property
    def milliseconds(self) -> float:
        """The CPU time of the service per document."""
        return 1000 * self.cores / self.documents_per_second

    def row(self, offline: float, offline_milliseconds: float) -> list[str]:
        """Return a row of the table."""
        all_milliseconds = self.milliseconds * (1 + self.client_cores / self.cores)
        times = np.percentile(self.latencies, [50, 95, 99]) * 1000
        others = {status: n for status, n in self.statuses.items() if status != 200}
        speed = self.documents_per_second
        return [
            *(f"{each:,.0f}" for each in (self.n_clients, self.n_texts, speed, offline)),
            f"{speed / offline:.0%}",
            *(f"{each:,.0f}" for each in times),
            *(f"{each:.2f}" for each in (self.cores, self.milliseconds)),
            f"{offline_milliseconds / all_milliseconds:.0%}",
            str(others or "none"),
        ]


class Service:
    """A service that runs during a `with` block."""

    def __init__(self, model: Path) -> None:
        command = [sys.executable, "-m", "setrnn", "serve", str(model), "--port", "0"]
        command += ["--device", "cpu"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = 0

    def __enter__(self) -> Service:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r"http://127.0.0.1:(\d+)", line)
            self.port = int(found[1]) if found else self.port
            if line.startswith("Ready"):
                # another process discards the access log
                log = subprocess.DEVNULL
                self.drain = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=log)
                return self
        raise SystemExit("The service did not start.")

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, "the service did not stop cleanly"
        self.drain.wait()

    @property
    def cpu_seconds(self) -> float:
        """The CPU time of all threads so far."""
        values = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")")[1].split()
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")

    def loaded(self, messages: list[bytes], n_clients: int, n_texts: int, seconds: float) -> Load:
        """Send requests from several clients for some seconds."""
        before, own = self.cpu_seconds, time.process_time()
        found = asyncio.run(_put_load(self.port, messages, n_clients, n_texts, seconds))
        found.cores = (self.cpu_seconds - before) / found.seconds
        found.client_cores = (time.process_time() - own) / found.seconds
        return found


def requests(texts: list[str], n_texts: int, rule: str | None) -> list[bytes]:
    """Return HTTP requests of `n_texts` texts each."""
    found = []
    for start in range(0, len(texts) - n_texts + 1, n_texts):
        wanted = {"texts": texts[start : start + n_texts], "rule": rule}
        body = json.dumps(wanted).encode()
        head = (
            "POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        found.append(head.encode() + body)
    return found


async def _put_load(
    port: int, messages: list[bytes], n_clients: int, n_texts: int, seconds: float
) -> Load:
    found, start = Load(n_clients, n_texts), time.perf_counter()
    firsts = (7 * number % len(messages) for number in range(n_clients))
    end = start + seconds
    await asyncio.gather(*(_client(port, messages, first, found, end) for first in firsts))
    found.seconds = time.perf_counter() - start
    return found


async def _client(port: int, messages: list[bytes], first: int, found: Load, end: float) -> None:
    """Send requests, each after the previous answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    for message in islice(cycle(messages), first, None):
        start = time.perf_counter()
        if start > end:
            break
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        found.latencies.append(time.perf_counter() - start)
        found.statuses[int(head[9:12])] += 1
    writer.close()


def offline_speed(
    tagger: Tagger, texts: list[str], rule: str | None, seconds: float
) -> tuple[float, float]:
    """Measure `Tagger.tag_stream` on the same texts: documents/s, ms of CPU time per document."""
    documents = [(text, ()) for text in texts]
    n_documents, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        n_documents += len(list(tagger.tag_stream(documents, rule)))
    cpu = time.process_time() - cpu
    return n_documents / (time.perf_counter() - start), 1000 * cpu / n_documents


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rule", default=None)
    parser.add_argument("--seconds", type=float, default=10.0, help="per measurement")
    chosen = parser.parse_args()
    texts = [example.text for example in newsroom.examples("test")]
    tagger = load(chosen.model, "cpu")
    measure = partial(offline_speed, tagger, texts, chosen.rule)
    measure(WARM_UP)
    print_head(
        "clients", "texts per request", "documents/s", "offline", "of offline", "p50, ms", "p95",
        "p99", "cores used", "CPU, ms", "share of CPU time", "other answers",
    )  # fmt: skip
    with Service(chosen.model) as service:
        before = measure(chosen.seconds / 2)
        for n_texts in N_TEXTS:
            messages = requests(texts, n_texts, chosen.rule)
            service.loaded(messages, 8, n_texts, WARM_UP)
            for n_clients in N_CLIENTS:
                found = service.loaded(messages, n_clients, n_texts, chosen.seconds)
                after = measure(chosen.seconds / 2)
                offline = [(one + other) / 2 for one, other in zip(before, after, strict=True)]
                print_row(*found.row(*offline))
                before = after


if __name__ == "__main__":
    main()
