"""Two services behind nginx, with the settings in deploy/: TLS, keys, limits and slow clients."""

import json
import re
import signal
import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx
import pytest
from nginx import DEPLOY, free_port, needs_nginx, proxying

from service_process import running
from setrnn.serve.problems import KINDS

KEY = "k" * 32
JSON = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
PROBLEM = "application/problem+json"
TEXTS = json.dumps({"texts": ["Velmara lift trophy."]})

pytestmark = [pytest.mark.slow, needs_nginx]


def make_certificate(folder):
    """Run the command of the README."""
    readme = (DEPLOY / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (openssl req .*?[^\\])$", readme, re.MULTILINE | re.DOTALL)
    subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def services(taggers, tmp_path_factory):
    """Two services of one model."""
    folder = tmp_path_factory.mktemp("services")
    taggers["br"].save(folder / "model")
    (folder / "keys").write_text(KEY)
    options = ("--api-key-file", folder / "keys", folder / "model")
    with ExitStack() as stack:
        yield [stack.enter_context(running(folder / f"log{n}", *options)) for n in range(2)]


@pytest.fixture(scope="module")
def proxied(services, tmp_path_factory):
    """A client of nginx with TLS, and the port of nginx without."""
    folder = tmp_path_factory.mktemp("proxied")
    make_certificate(folder)
    http_port, https_port = free_port(), free_port()
    places = " ".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    changes = {
        "server setrnn:8000 max_fails=0;": " ".join(
            f"server 127.0.0.1:{each.port} max_fails=0;" for each in services
        ),
        "listen 80 ": f"listen 127.0.0.1:{http_port} ",
        "listen 443 ": f"listen 127.0.0.1:{https_port} ",
        "/run/secrets/": f"{folder}/",
        "/run/nginx.pid": f"{folder}/nginx.pid",
        "http {": f"http {{ {places}",
    }
    context = ssl.create_default_context(cafile=str(folder / "tls.crt"))
    address = f"https://localhost:{https_port}"
    with (
        proxying(folder, "nginx.conf", changes),
        httpx.Client(base_url=address, verify=context, timeout=30) as client,
    ):
        yield client, http_port


@pytest.fixture(scope="module")
def sidecar(services, tmp_path_factory):
    """The port of the nginx of a pod, which waits for a second where it would for ten."""
    folder, port = tmp_path_factory.mktemp("pod"), free_port()
    changes = {
        "server 127.0.0.1:8000 ": f"server 127.0.0.1:{services[0].port} ",
        "listen 8080 ": f"listen 127.0.0.1:{port} ",
        "/tmp/": f"{folder}/",
        "timeout 10s;": "timeout 1s;",
    }
    with proxying(folder, "kubernetes/nginx.conf", changes):
        yield port


def test_plain_http_is_referred_to_tls(proxied):
    answer = httpx.get(f"http://localhost:{proxied[1]}/v1/models")
    assert answer.status_code == 308
    assert answer.headers["Location"].startswith("https://localhost/v1/models")


def test_requests_pass_with_a_key_only(proxied):
    client, _ = proxied
    answer = client.post("/v1/tag", content=TEXTS, headers=JSON)
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"]
    assert "Strict-Transport-Security" in answer.headers
    refused = client.post("/v1/tag", content=TEXTS, headers={"Content-Type": "application/json"})
    assert refused.status_code == 401
    assert client.get("/metrics", headers=JSON).status_code == 404  # for the inside only


def test_a_large_body_is_refused_as_the_service_refuses_it(proxied, sidecar):
    for answer in (
        proxied[0].post("/v1/tag", content=b" " * (5 << 20), headers=JSON),
        httpx.post(f"http://127.0.0.1:{sidecar}/v1/tag", content=b" " * (5 << 20), headers=JSON),
    ):
        assert answer.status_code == 413
        assert answer.headers["Content-Type"] == PROBLEM
        assert answer.json()["type"].endswith(":body-too-large")
        assert answer.json()["title"] == KINDS["body-too-large"][1]


def n_open(service):
    """The number of connections that a service has."""
    found = subprocess.run(
        ["ls", f"/proc/{service.process.pid}/fd", "-l"], capture_output=True, text=True, check=True
    )
    return found.stdout.count("socket:")


HEAD = b"POST /v1/tag HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "said", [b"", HEAD, HEAD + b"Content-Length: 1000\r\n\r\n" + b" " * 500], ids=len
)
def test_slow_clients_end_at_the_proxy(services, sidecar, said):
    before = n_open(services[0])
    silent = [socket.create_connection(("127.0.0.1", sidecar), 20) for _ in range(50)]
    for each in silent:
        each.sendall(said)
    answer = httpx.post(f"http://127.0.0.1:{sidecar}/v1/tag", content=TEXTS, headers=JSON)
    assert answer.status_code == 200  # others are answered meanwhile
    assert n_open(services[0]) <= before + 2
    for each in silent:
        with each, suppress(ConnectionResetError):
            assert b"200" not in each.recv(1_000)  # closed


def test_a_large_head_ends_at_the_proxy(sidecar):
    with socket.create_connection(("127.0.0.1", sidecar), 20) as client:
        client.sendall(HEAD + b"X-Filler: " + b"x" * 70_000 + b"\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def test_a_client_that_asks_too_often_is_told_when_to_come_back(proxied):
    answers = [proxied[0].get("/healthz") for _ in range(150)]
    statuses = [answer.status_code for answer in answers]
    assert {*statuses} == {200, 429}
    assert statuses.count(200) >= 20  # a burst passes
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["Retry-After"] == "1"
    assert refused.headers["Content-Type"] == PROBLEM
    assert refused.json()["status"] == 429


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_service_that_ends_loses_no_answer(taggers, services, proxied, tmp_path, number):
    """Runs last: one service is stopped, then another in its place is killed."""
    client, _ = proxied
    taggers["br"].save(tmp_path / "model")
    (tmp_path / "keys").write_text(KEY)
    first = services[0]
    options = ("--api-key-file", tmp_path / "keys", tmp_path / "model")
    with ExitStack() as stack:
        if first.process.poll() is not None:
            first = stack.enter_context(running(tmp_path / "log", *options, port=first.port))

        def ask(_):
            answer = client.post("/v1/tag", content=TEXTS, headers=JSON)
            time.sleep(0.2)  # within the limit of requests per client
            return answer.status_code

        with ThreadPoolExecutor(4) as pool:
            statuses = pool.map(ask, range(60))
            time.sleep(1)
            first.process.send_signal(number)
            found = [each for each in statuses if each != 429]
        assert first.process.wait(60) == (0 if number == signal.SIGTERM else -number)
    assert len(found) > 30
    assert {*found} == {200}
