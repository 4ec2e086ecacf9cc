"""The service under good, bad and slow load, while its model is replaced again and again."""

import http.client
import json
import re
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from children import Child, forks
from load import poll_health, start_clients
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
    child.kill_all()
    child.wait()


def memory_of(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10


def get(port, route):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", route)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_the_service_answers_rightly_under_any_load(service, tries, tmp_path, chance):
    child, port, world = service
    texts = [json.loads(line)["text"] for line in (world / "data/valid.jsonl").open()][:40]
    expected, labels = {}, []
    for model in MODELS:
        tagger = setrnn.load(world / model, "cpu")
        expected[read_version(world / model)] = tagger.tag(texts)
        labels = list(tagger.labels.names)

    stop, log = threading.Event(), tmp_path / "health"
    health = forks().Process(target=poll_health, args=(port, str(log)), daemon=True)
    health.start()
    threads, tallies = start_clients(port, stop, texts, expected, labels, chance.random())
    start, memory, n_reloads = time.monotonic(), 0, 0
    while time.monotonic() < start + SECONDS and child.process.is_alive():
        time.sleep(1)
        n_reloads += 1
        replace_folder(world / MODELS[n_reloads % 2], world / "served/model")
        child.kill(signal.SIGHUP)
        if not memory and time.monotonic() > start + SECONDS / 3:
            memory = memory_of(child.process.pid)
    stop.set()
    for thread in threads:
        thread.join(70)
    health.kill()
    problems = end_problems(child, port, memory)
    replaced = child.output.count(" replaces ")
    if not replaced:
        problems.append("no reload was done")
    times = [line.split() for line in log.read_text().splitlines()[:-1]]

    lost = []
    for name, tally in tallies.items():
        try:
            with tries("service under load", f"{name} requests") as found:
                found.add_many(tally.n_tries, tally.n_survived)
                found.losses.update(tally.problems)
                found.first.update({problem: problem for problem in tally.problems})
        except pytest.fail.Exception as error:
            lost.append(f"{name}: {error}")
    try:
        with tries("service under load", "answers of /healthz") as found:
            add_health(found, times)
    except pytest.fail.Exception as error:
        lost.append(f"health: {error}")
    try:
        with tries("service under load", "reloads and memory") as found:
            found.add(problems)
    except pytest.fail.Exception as error:
        lost.append(f"end: {error}")
    assert not lost, "\n".join(lost)


def replace_folder(source, target):
    """Replace a model folder in one step, as saving a model does."""
    with whole_folder(target) as folder:
        for file in source.iterdir():
            shutil.copy2(file, folder / file.name)


def add_health(found, times):
    slow = [float(seconds) for _, seconds in times if float(seconds) > HEALTH_SECONDS]
    is_fine = len(slow) <= HEALTH_SHARE * len(times) and max(slow, default=0) <= SLOWEST_SECONDS
    for status, seconds in times:
        problems = [] if status == "200" else [f"status {status}"]
        if float(seconds) > HEALTH_SECONDS and not is_fine:
            problems.append(f"slow (up to {max(slow):.1f} s)")
        found.add(problems)


def end_problems(child, port, memory):
    """After the load: alive, ready, no larger, and stopped when asked."""
    if not child.process.is_alive():
        return [f"ended: {child.wait()}"]
    problems = []
    for route in ("/healthz", "/readyz", "/metrics"):
        try:
            status = get(port, route)
        except OSError as error:
            status = type(error).__name__
        if status != 200:
            problems.append(f"{route}: {status} after the load")
    growth = memory_of(child.process.pid) - memory
    if growth > MEMORY_GROWTH:
        problems.append(f"{growth >> 20} MB more memory")
    if "Traceback" in child.output:
        problems.append("a traceback in the log")
    child.kill(signal.SIGTERM)
    ended = child.wait(90)
    if not ended.is_done:
        problems.append(f"stopped: {ended}")
    return problems
