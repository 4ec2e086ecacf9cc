"""The service in several processes: one address, one set of metrics, one end."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from service_process import running

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
TEXTS = {"texts": ["budget vote in the capital"]}


@pytest.fixture(scope="module")
def folder(taggers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared") / "model"
    taggers["br"].save(folder)
    return folder


@pytest.fixture(scope="module")
def service(folder, tmp_path_factory):
    with running(tmp_path_factory.mktemp("log") / "log", folder, "--processes", 2) as service:
        yield service


def children_of(service):
    """The processes that serve: copies of a child of the first process."""
    parents = {int(each.parent.name): parent_of(each) for each in Path("/proc").glob("[0-9]*/stat")}
    return [
        child for child, parent in parents.items() if parents.get(parent) == service.process.pid
    ]


def parent_of(stat):
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended meanwhile
        return None


def ask(service, n_times):
    """Ask on new connections, so that both processes answer."""
    for _ in range(n_times):
        with httpx.Client(base_url=service.client.base_url, timeout=60) as client:
            assert client.post("/v1/tag", json=TEXTS).status_code == 200


def wait_for_count(service, expected):
    """Return the number of answers once it is as expected: each is counted after it is sent."""
    end = time.monotonic() + 10
    while (found := n_answered(service)) < expected and time.monotonic() < end:
        time.sleep(0.05)
    return found


def n_answered(service):
    page = service.client.get("/metrics").text
    found = re.search(r'setrnn_requests_total\{route="/v1/tag",status="200"\} (\S+)', page)
    return float(found[1]) if found else 0.0


def test_it_is_ready_once(service):
    assert service.printed.count("Ready: model (br), in 2 processes.") == 1
    assert service.printed.count("Listening on") == 1


def test_processes_share_the_memory_of_the_libraries(service):
    for child in children_of(service):
        sizes = Path(f"/proc/{child}/smaps_rollup").read_text()
        of = {name: int(kilobytes) for name, kilobytes in re.findall(r"(\w+): +(\d+) kB", sizes)}
        assert of["Private_Dirty"] < of["Rss"] / 3


def test_metrics_are_added_up(service):
    before = n_answered(service)
    ask(service, 20)
    assert wait_for_count(service, before + 20) == before + 20


def test_a_signal_to_reload_reaches_all(service, folder, taggers):
    shutil.rmtree(folder)
    taggers["br-support"].save(folder)
    service.process.send_signal(signal.SIGHUP)
    for number in (1, 2):
        service.wait_for(f"Process {number}: model: ")
    for _ in range(10):
        with httpx.Client(base_url=service.client.base_url, timeout=60) as client:
            assert client.post("/v1/tag", json=TEXTS).json()["model"]["method"] == "br-support"


def test_a_process_that_is_killed_is_replaced(service):
    first, *others = children_of(service)
    before = n_answered(service)
    os.kill(first, signal.SIGKILL)
    service.wait_for("ended (signal 9)")
    end = time.monotonic() + 60
    while len(children_of(service)) < 2 or first in children_of(service):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert set(others) < set(children_of(service))
    ask(service, 4)
    # Those of the killed process still count.
    assert wait_for_count(service, before + 4) == before + 4


def test_all_end_together_and_well(service):
    children = children_of(service)
    for parent in {parent_of(Path(f"/proc/{child}/stat")) for child in children}:
        os.kill(parent, signal.SIGTERM)  # as one that is sent to all processes
    assert service.end() == 0, service.printed
    assert service.printed.endswith("Stopped; all requests were answered.\n")
    for child in children:
        assert not is_running(child)


def test_they_end_when_the_first_process_is_killed(folder, tmp_path):
    with running(tmp_path / "log", folder, "--processes", 2) as service:
        children = children_of(service)
        assert len(children) == 2
        service.process.kill()
        service.process.wait()
        end = time.monotonic() + 30
        while any(is_running(child) for child in children):
            assert time.monotonic() < end
            time.sleep(0.1)


def is_running(number):
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"  # nobody waits for it


def test_a_model_that_cannot_be_loaded_is_one_line(tmp_path):
    command = [sys.executable, "-m", "setrnn", "serve", str(tmp_path / "none"), "--processes", "2"]
    ended = subprocess.run([*command, "--port", "0"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("error:")]
    assert "is not a model" in line
