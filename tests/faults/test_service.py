"""The service under good, bad and slow load, while its model is replaced again and again."""

import http.client
import json
import random
import re
import shutil
import signal
import socket
import threading
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest
from children import Child, forks
from worlds import copy_parts

import setrnn
from setrnn.data.disk import whole_folder
from setrnn.models.folder import read_version

SECONDS = 40.0
HEALTH_SECONDS = 0.2  # for nearly all answers of /healthz,
HEALTH_SHARE = 0.02  # but this share on a machine whose cores are all busy,
SLOWEST_SECONDS = 1.0  # and this for all
MEMORY_GROWTH = 300 << 20  # bytes, after the first third of the load
MODELS = ("models/network", "models/other")
LIMITS = ("--max-words", "200000", "--max-body-bytes", "8000000", "--port", "0", "--device", "cpu")
HEAD = b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LONG = "9" * 5_500_000 + "a"  # panics a tokenizer that does not bound it
DEEP = b'{"texts":["a"],"x":[' + b"[]," * 1_300_000 + b"[]]}"  # 4 MiB of empty lists
TOLERANCE = 1e-3  # of a probability: the last digits depend on the rest of the batch
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


@pytest.fixture
def service(base, tmp_path):
    """A service of one model in a folder that is replaced."""
    world = copy_parts(base, tmp_path / "world", ("data", *MODELS), {MODELS[0]: "served/model"})
    child = Child(world, ("serve", "served/model", *LIMITS))
    end = time.monotonic() + 60
    while "Ready" not in child.output:
        assert child.process.is_alive(), child.output
        assert time.monotonic() < end, child.output
        time.sleep(0.05)
    port = int(re.search(r"http://127\.0\.0\.1:(\d+)", child.output)[1])
    yield child, port, world
    child.kill()
    child.wait()


def request(port, route, body=None, seconds=60.0):
    """Send a request over a connection of its own; return the status and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        head = {"Content-Type": "application/json"} if body is not None else {}
        connection.request("GET" if body is None else "POST", route, body, head)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def ask_well(port, chance, texts, expected):
    """Tag texts, and compare the answer with the library's for the version that answered."""
    chosen = chance.sample(range(len(texts)), chance.randint(1, 8))
    body = json.dumps({"texts": [texts[each] for each in chosen]}).encode()
    status, content = request(port, "/v1/tag", body)
    if status != 200:
        return f"status {status}"
    answer = json.loads(content)
    rows, wanted = answer["predictions"], expected[answer["model"]["version"]]
    is_right = len(rows) == len(chosen) and all(
        sorted(row["labels"]) == sorted(wanted[each].labels)
        and abs(row["probability"] - wanted[each].probability) < TOLERANCE
        for row, each in zip(rows, chosen, strict=True)
    )
    return None if is_right else "a wrong answer"


def ask_badly(port, chance):
    """Send what is not a request; it must get its documented answer."""
    name = chance.choice(list(BAD))
    route, body, right = BAD[name]
    status, content = request(port, route, body)
    return None if status in right else f"{name}: status {status} {content[:80]!r}"


def ask_much(port, labels):
    """Send a small request that is long work."""
    asked = {"texts": ["goal"] * 64, "require": labels[:20], "min_labels": 30, "top": 50}
    body = json.dumps({**asked, "marginals": True}).encode()
    status, _ = request(port, "/v1/tag", body)
    return None if status in (200, 422) else f"status {status}"


def ask_again(stop, pause, found, ask):
    """Ask until the end, and count what was answered wrongly or not at all."""
    while not stop.is_set():
        try:
            problem = ask()
        except OSError as error:
            problem = f"no answer: {type(error).__name__}"
        found.add([problem] if problem else [])
        stop.wait(pause)


def ask_slowly(port, stop):
    """Send a head and a body byte by byte, again and again."""
    whole = HEAD + b"Content-Length: 100000\r\n\r\n" + b" " * 200
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            for byte in whole:
                client.send(bytes([byte]))
                if stop.wait(0.05):
                    break


def leave(port, stop, texts):
    """Send a good request, and close without waiting for its answer."""
    body = json.dumps({"texts": texts[:32]}).encode()
    head = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode()
    while not stop.wait(0.05):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
            client.sendall(head + body)


def poll_health(port, file):
    """Write how long each answer of /healthz takes; in a process of its own, until killed."""
    with open(file, "w", buffering=1) as log:  # noqa: PTH123
        while True:
            start, status = time.monotonic(), 0
            with suppress(OSError):
                status, _ = request(port, "/healthz", seconds=30)
            log.write(f"{status} {time.monotonic() - start:.4f}\n")
            time.sleep(0.02)


def test_the_service_answers_rightly_under_any_load(service, tries, tmp_path, chance):
    child, port, world = service
    texts = [json.loads(line)["text"] for line in (world / "data/valid.jsonl").open()][:40]
    taggers = {read_version(world / model): setrnn.load(world / model, "cpu") for model in MODELS}
    expected = {version: tagger.tag(texts) for version, tagger in taggers.items()}
    labels = list(taggers.popitem()[1].labels.names)
    chances = [random.Random(f"{chance.random()}") for _ in range(5)]

    stop, log = threading.Event(), tmp_path / "health"
    health = forks().Process(target=poll_health, args=(port, str(log)), daemon=True)
    health.start()
    with ExitStack() as stack:
        good, bad, costly, healthy, end = (
            stack.enter_context(tries("service under load", name))
            for name in (
                *("good requests", "bad requests", "costly requests"),
                *("answers of /healthz", "reloads and memory"),
            )
        )
        works = [
            *(partial(ask_again, stop, 0, good, partial(ask_well, port, each, texts, expected))
              for each in chances[:3]),
            *(partial(ask_again, stop, 0, bad, partial(ask_badly, port, each))
              for each in chances[3:]),
            partial(ask_again, stop, 2, costly, partial(ask_much, port, labels)),
            *[partial(ask_slowly, port, stop)] * 20,
            partial(leave, port, stop, texts),
        ]  # fmt: skip
        threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in threads:
            thread.start()
        start, memory, n_reloads = time.monotonic(), 0, 0
        while time.monotonic() < start + SECONDS and child.process.is_alive():
            time.sleep(1)
            n_reloads += 1
            replace_folder(world / MODELS[n_reloads % 2], world / "served/model")
            child.kill(signal.SIGHUP, alone=True)
            if not memory and time.monotonic() > start + SECONDS / 3:
                memory = memory_of(child.process.pid)
        stop.set()
        for thread in threads:
            thread.join(70)
        health.kill()
        end.add(end_problems(child, port, memory))
        times = [line.split() for line in log.read_text().splitlines()[:-1]]
        slow = [float(seconds) for _, seconds in times if float(seconds) > HEALTH_SECONDS]
        is_fine = len(slow) <= HEALTH_SHARE * len(times) and max(slow, default=0) <= SLOWEST_SECONDS
        for status, seconds in times:
            problems = [] if status == "200" else [f"status {status}"]
            if float(seconds) > HEALTH_SECONDS and not is_fine:
                problems.append(f"slow (up to {max(slow):.1f} s)")
            healthy.add(problems)


def replace_folder(source, target):
    """Replace a model folder in one step, as saving a model does."""
    with whole_folder(target) as folder:
        for file in source.iterdir():
            shutil.copy2(file, folder / file.name)


def memory_of(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10


def end_problems(child, port, memory):
    """After the load: alive, ready, no larger, and stopped when asked."""
    if not child.process.is_alive():
        return [f"ended: {child.wait()}"]
    problems = [] if " replaces " in child.output else ["no reload was done"]
    for route in ("/healthz", "/readyz", "/metrics"):
        try:
            status, _ = request(port, route)
        except OSError as error:
            status = type(error).__name__
        if status != 200:
            problems.append(f"{route}: {status} after the load")
    growth = memory_of(child.process.pid) - memory
    if growth > MEMORY_GROWTH:
        problems.append(f"{growth >> 20} MB more memory")
    if "Traceback" in child.output:
        problems.append("a traceback in the log")
    child.kill(signal.SIGTERM, alone=True)
    ended = child.wait(90)
    return problems if ended.is_done else [*problems, f"stopped: {ended}"]
