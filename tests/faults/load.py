"""Clients of a service: good, bad, slow and leaving ones, each in a thread of its own."""

import http.client
import json
import random
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

HEAD = b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LONG = "9" * 5_500_000 + "a"  # panics a tokenizer that does not bound it
DEEP = b'{"texts":["a"],"x":[' + b"[]," * 1_300_000 + b"[]]}"  # 4 MiB of empty lists
TOLERANCE = 1e-3  # of a probability: the last digits depend on the rest of the batch
REFUSED = (503,)  # a busy service may always say so
# A bad request, as its route, its body, and the answers that are right.
BAD = {
    "half an object": ("/v1/tag", b'{"texts": [', (400, 422)),
    "no body": ("/v1/tag", b"", (400, 422)),
    "not UTF-8": ("/v1/tag", b'{"texts": ["\xff"]}', (400, 422)),
    "texts that are a number": ("/v1/tag", b'{"texts": 3}', (422,)),
    "an unknown field": ("/v1/tag", b'{"texts": ["a"], "txets": 1}', (422,)),
    "an unknown label": ("/v1/tag", b'{"texts": ["a"], "require": ["foootball"]}', (422,)),
    "an unknown model": ("/v1/tag", b'{"texts": ["a"], "model": "none"}', (422,)),
    "an unknown rule": ("/v1/tag", b'{"texts": ["a"], "rule": "none"}', (422,)),
    "no texts": ("/v1/tag", b'{"texts": []}', (422,)),
    "too many texts": ("/v1/tag", json.dumps({"texts": ["a"] * 65}).encode(), (422,)),
    "top of 10^30": ("/v1/tag", b'{"texts": ["a"], "top": 1' + b"0" * 30 + b"}", (400, 422)),
    "nested deep": ("/v1/tag", b'{"texts": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", (400, 422)),
    "a million empty lists": ("/v1/tag", DEEP, (400, 413, 422)),
    "5.5 million digits": ("/v1/tag", json.dumps({"texts": [LONG]}).encode(), (200, 413, 422)),
    "too large a body": ("/v1/tag", b" " * 9_000_000, (413,)),
    "present labels nobody knows": ("/v1/complete", b'{"text": "a", "present": ["x"]}', (422,)),
    "an unknown route": ("/v1/none", b"{}", (404,)),
}


@dataclass
class Tally:
    """What the clients of one kind have seen."""

    n_tries: int = 0
    n_survived: int = 0
    problems: Counter = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, problem=None):
        with self.lock:
            self.n_tries += 1
            self.n_survived += problem is None
            if problem is not None:
                self.problems[problem] += 1


def post(port, route, body, seconds=60.0):
    """Send a request over a connection of its own; return the status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("POST", route, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def ask_well(port, tally, stop, chance, texts, expected):
    """Tag texts, and compare the answer with the library's for the version that answered."""
    while not stop.is_set():
        chosen = chance.sample(range(len(texts)), chance.randint(1, 8))
        body = json.dumps({"texts": [texts[each] for each in chosen]}).encode()
        try:
            status, headers, content = post(port, "/v1/tag", body)
        except OSError as error:
            tally.add(f"no answer: {type(error).__name__}")
            continue
        if status in REFUSED:
            tally.add()
            time.sleep(0.1)
            continue
        if status != 200:
            tally.add(f"status {status}")
            continue
        wanted = expected[headers["X-Model-Version"]]
        rows = json.loads(content)["predictions"]
        is_right = len(rows) == len(chosen) and all(
            sorted(row["labels"]) == sorted(wanted[each].labels)
            and abs(row["probability"] - wanted[each].probability) < TOLERANCE
            for row, each in zip(rows, chosen, strict=True)
        )
        tally.add(None if is_right else "a wrong answer")


def ask_badly(port, tally, stop, chance):
    """Send what is not a request; each must get its documented answer."""
    while not stop.is_set():
        name = chance.choice(list(BAD))
        route, body, right = BAD[name]
        try:
            status, _, content = post(port, route, body)
        except OSError as error:
            tally.add(f"{name}: no answer ({type(error).__name__})")
            continue
        is_right = status in (*right, *REFUSED)
        tally.add(None if is_right else f"{name}: status {status} {content[:80]!r}")


def ask_much(port, tally, stop, labels):
    """Send a small request that is long work."""
    request = {"texts": ["goal"] * 64, "require": labels[:20], "min_labels": 30, "top": 50}
    body = json.dumps({**request, "marginals": True}).encode()
    while not stop.is_set():
        try:
            status, _, _ = post(port, "/v1/tag", body)
        except OSError as error:
            tally.add(f"no answer: {type(error).__name__}")
            continue
        tally.add(None if status in (200, 422, *REFUSED) else f"status {status}")
        stop.wait(2)


def ask_slowly(port, tally, stop):
    """Send a head or a body byte by byte, and wait for the end."""
    whole = HEAD + b"Content-Length: 100000\r\n\r\n" + b" " * 200
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            for byte in whole:
                client.send(bytes([byte]))
                if stop.wait(0.05):
                    break
        tally.add()  # it is survived if the others are


def leave(port, tally, stop, texts):
    """Send a good request, and close without waiting for its answer."""
    body = json.dumps({"texts": texts[:32]}).encode()
    head = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode()
    while not stop.wait(0.05):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            client.sendall(head + body)
        tally.add()


def poll_health(port, file):
    """Write how long each answer of /healthz takes; in a process of its own, until killed."""
    with open(file, "w", buffering=1) as log:  # noqa: PTH123
        while True:
            start = time.monotonic()
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                connection.request("GET", "/healthz")
                status = connection.getresponse().status
                connection.close()
            except OSError:
                status = 0
            log.write(f"{status} {time.monotonic() - start:.4f}\n")
            time.sleep(0.02)


def start_clients(port, stop, texts, expected, labels, seed):
    """Start all clients; return their threads and a tally per kind."""
    tallies = {name: Tally() for name in ("good", "bad", "long work", "slow", "leaving")}
    chances = [random.Random(f"{seed} {number}") for number in range(8)]
    works = [
        *((ask_well, (tallies["good"], stop, chances[n], texts, expected)) for n in range(3)),
        *((ask_badly, (tallies["bad"], stop, chances[3 + n])) for n in range(2)),
        (ask_much, (tallies["long work"], stop, labels)),
        *((ask_slowly, (tallies["slow"], stop)) for _ in range(20)),
        (leave, (tallies["leaving"], stop, texts)),
    ]
    threads = [
        threading.Thread(target=work, args=(port, *rest), daemon=True) for work, rest in works
    ]
    for thread in threads:
        thread.start()
    return threads, tallies
