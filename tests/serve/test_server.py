"""The service as a process: signals, a kill, and what it prints."""

import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from service_process import Forked, running

MARKER = "unmistakablemarker"


@contextmanager
def asked_by(service, n_clients):
    """Let clients ask at once, each for 64 texts; their answers to come."""

    def ask(number):
        with httpx.Client(base_url=service.client.base_url, timeout=60) as client:
            return client.post("/v1/tag", json={"texts": [f"{number} budget"] * 64})

    with ThreadPoolExecutor(n_clients) as pool:
        yield [pool.submit(ask, number) for number in range(n_clients)]


def is_listening(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def folder(taggers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "model"
    taggers["set-rnn"].save(folder)
    return folder


@pytest.fixture(scope="module")
def service(folder, tmp_path_factory):
    """One process that several tests ask; it ends well."""
    with running(tmp_path_factory.mktemp("log") / "log", folder) as service:
        yield service
        assert service.end() == 0, service.printed
        assert service.printed.endswith("Stopped; all requests were answered.\n")


def test_it_says_where_it_listens_and_to_whom(service):
    first, second, third = service.printed.splitlines()[:3]
    assert first == "Loading model ..."
    assert second == f"Listening on http://127.0.0.1:{service.port}, on this machine only."
    assert third == "Ready: model (set-rnn)."


def test_no_text_is_printed(service):
    texts = {"text": MARKER, "model": MARKER}
    for body in (
        {"texts": [MARKER]},
        {"texts": [MARKER], "require": [MARKER]},
        {MARKER: 1},
        MARKER,
    ):
        service.client.post("/v1/tag", json=body)
    service.client.post("/v1/complete", json={"text": MARKER, "present": [MARKER]})
    service.client.post("/v1/explain", json={**texts, "model": None})
    service.client.post("/v1/explain", json=texts)
    service.client.post("/v1/tag", content=f'{{"texts": ["{MARKER}"')
    service.client.get("/v1/labels", params={"prefix": MARKER})
    service.client.get(f"/{MARKER}")
    service.client.request(MARKER.upper(), "/v1/tag")
    with socket.create_connection(("127.0.0.1", service.port)) as raw:
        raw.sendall(f"{MARKER}\r\n\r\n".encode())
        answer = raw.recv(10_000)
    assert b"400 Bad Request" in answer
    service.wait_for("GET /v1/labels 200")
    assert MARKER not in service.printed.lower()


def test_a_replaced_folder_is_picked_up(service, taggers, folder):
    def model():
        return service.client.post("/v1/tag", json={"texts": ["x"]}).json()["model"]

    def reload(said):
        service.process.send_signal(signal.SIGHUP)
        service.wait_for(said)

    first = model()
    taggers["br"].save(folder)
    reload(f"replaces {first['version']}.")
    second = model()
    assert (first["method"], second["method"]) == ("set-rnn", "br")
    taggers["set-rnn"].save(folder)
    reload(f"replaces {second['version']}.")


def test_what_is_in_flight_is_finished_before_the_end(folder, tmp_path):
    options = "--batch", "16", "--workers", "1"
    with running(tmp_path / "log", folder, *options, early=signal.SIGHUP) as service:
        with asked_by(service, 4) as asking:
            while service.n_waiting < 64:
                assert not all(each.done() for each in asking)
            assert service.end() == 0, service.printed
            answers = [each.result() for each in asking]
        for answer in answers:
            assert answer.status_code == 200
            assert len(answer.json()["predictions"]) == 64
        with pytest.raises(httpx.ConnectError):
            service.client.get("/healthz")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_that_come_early_stop_it(folder, tmp_path, number):
    process = Forked(["serve", str(folder), "--port", "0"], tmp_path / "log")
    try:
        while "Loading" not in (printed := (tmp_path / "log").read_text()):
            assert process.poll() is None, printed
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == 130
        assert (
            "Stopped setrnn serve. Nothing was left half written" in (tmp_path / "log").read_text()
        )
    finally:
        process.kill()
        process.wait()


def test_an_end_at_once_is_not_said_to_be_a_good_one(folder, tmp_path):
    with running(tmp_path / "log", folder, "--batch", "1", "--workers", "1") as service:
        with asked_by(service, 8) as asking:
            while service.n_waiting < 256:
                assert not all(each.done() for each in asking)
            service.process.send_signal(signal.SIGINT)
            while is_listening(service.port):  # until it has begun to stop
                time.sleep(0.01)
            assert service.end(signal.SIGINT) == 1
            answers = [each.result() for each in asking if each.exception() is None]
        assert re.search(r"Stopped; \d+ requests were refused or left unanswered", service.printed)
        for answer in answers:
            assert answer.status_code in (200, 503)
            assert answer.json()
