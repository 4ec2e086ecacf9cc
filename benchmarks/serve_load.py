"""The service under load against offline prediction: documents/s and latencies, on loopback.

The service is a process of its own; this one asks it, from sockets that wait for each answer.
"""

from __future__ import annotations

import argparse
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
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from setrnn import load
from setrnn.datasets import newsroom

N_CLIENTS = (1, 8, 64)


@dataclass
class Load:
    """What a number of clients saw."""

    n_clients: int
    n_texts: int  # a request
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def documents_per_second(self) -> float:
        return self.statuses[200] * self.n_texts / self.seconds

    def row(self, offline: float) -> str:
        p50, p95, p99 = np.percentile(self.latencies, [50, 95, 99]) * 1000
        others = {status: n for status, n in self.statuses.items() if status != 200}
        return (
            f"| {self.n_clients} | {self.n_texts} | {self.documents_per_second:,.0f} "
            f"| {self.documents_per_second / offline:.0%} | {p50:,.0f} | {p95:,.0f} | {p99:,.0f} "
            f"| {others or 'none'} |"
        )


class Service:
    """A service that runs while the block does."""

    def __init__(self, model: Path, options: list[str]) -> None:
        command = [sys.executable, "-m", "setrnn", "serve", str(model), "--port", "0", *options]
        # The access log goes where a service manager would take it: away from this process.
        self.log = Path(os.devnull).open("w")
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = 0

    def __enter__(self) -> Service:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            found = re.search(r"http://127.0.0.1:(\d+)", line)
            self.port = int(found[1]) if found else self.port
            if line.startswith("Ready"):
                self._drain()
                return self
        raise SystemExit("The service did not start.")

    def _drain(self) -> None:
        """Let the log flow on without reading it here."""
        assert self.process.stderr is not None
        subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, "the service did not end well"

    @property
    def megabytes(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) / 1024 if found else 0.0

    @property
    def cpu_seconds(self) -> float:
        values = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")")[1].split()
        return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


def requests(texts: list[str], n_texts: int, rule: str | None) -> list[bytes]:
    """Write requests of so many texts each, as bytes."""
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


async def client(port: int, messages: list[bytes], first: int, load: Load, end: float) -> None:
    """Ask again and again, each time when the answer to the last is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    for message in islice(cycle(messages), first, None):
        start = time.perf_counter()
        if start > end:
            break
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        load.latencies.append(time.perf_counter() - start)
        load.statuses[int(head[9:12])] += 1
    writer.close()


async def put_load(
    port: int, messages: list[bytes], n_clients: int, n_texts: int, seconds: float
) -> Load:
    """Let clients ask for a while."""
    load, start = Load(n_clients, n_texts), time.perf_counter()
    end = start + seconds
    firsts = (7 * number % len(messages) for number in range(n_clients))
    await asyncio.gather(*(client(port, messages, each, load, end) for each in firsts))
    load.seconds = time.perf_counter() - start
    return load


def offline_speed(model: Path, texts: list[str], rule: str | None, seconds: float) -> float:
    """Measure `Tagger.tag_stream` on the same texts: documents/s."""
    tagger = load(model, "cpu")
    documents = [(text, ()) for text in texts]
    list(tagger.tag_stream(documents[:64], rule))
    n_documents, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        n_documents += len(list(tagger.tag_stream(documents, rule)))
    return n_documents / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rule", default=None)
    parser.add_argument("--seconds", type=float, default=10.0, help="a measurement")
    parser.add_argument("--texts", default="1,16", help="texts a request")
    parser.add_argument("--clients", default=",".join(map(str, N_CLIENTS)))
    parser.add_argument("--minutes", type=float, default=0.0, help="of load, to watch the memory")
    parser.add_argument("--serve-options", default="", help="further options of setrnn serve")
    wanted = parser.parse_args()
    texts = [example.text for example in newsroom.examples("test")]
    options = ["--device", "cpu", *wanted.serve_options.split()]
    before = offline_speed(wanted.model, texts, wanted.rule, wanted.seconds)
    loads = []
    with Service(wanted.model, options) as service:
        if wanted.minutes:
            messages = requests(texts, 1, wanted.rule)
            asyncio.run(put_load(service.port, messages, 64, 1, 20))
            start = service.megabytes
            load = asyncio.run(put_load(service.port, messages, 64, 1, 60 * wanted.minutes))
            print(f"{wanted.minutes:g} minutes at 64 clients, {sum(load.statuses.values()):,} requests")
            print(f"resident memory: {start:.0f} MB after 20 s, {service.megabytes:.0f} MB at the end")
            print(f"statuses: {dict(load.statuses)}")
        else:
            for n_texts in map(int, wanted.texts.split(",")):
                messages = requests(texts, n_texts, wanted.rule)
                asyncio.run(put_load(service.port, messages, 8, n_texts, 2))
                for n_clients in map(int, wanted.clients.split(",")):
                    cpu, own = service.cpu_seconds, time.process_time()
                    found = asyncio.run(
                        put_load(service.port, messages, n_clients, n_texts, wanted.seconds)
                    )
                    cpu, own = service.cpu_seconds - cpu, time.process_time() - own
                    print(f"{n_clients} {n_texts}: service {cpu/found.seconds:.2f} cores, load {own/found.seconds:.2f}", file=sys.stderr)
                    loads.append(found)
    after = offline_speed(wanted.model, texts, wanted.rule, wanted.seconds)
    offline = (before + after) / 2
    print(f"Offline: {before:,.0f} documents/s before, {after:,.0f} after.\n")
    print("| clients | texts a request | documents/s | of offline | p50 ms | p95 | p99 | other than 200 |")
    print("|---|---|---|---|---|---|---|---|")
    for each in loads:
        print(each.row(offline))


if __name__ == "__main__":
    main()
