"""The service behind nginx, with the settings in deploy/: TLS, keys and limits."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from service_process import running

from setrnn.serve.problems import KINDS

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
KEY = "k" * 32
JSON = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
PROBLEM = "application/problem+json"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def make_certificate(folder):
    """Run the command of the README."""
    readme = (DEPLOY / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^    (openssl req .*?[^\\])$", readme, re.MULTILINE | re.DOTALL)
    subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)


def write_settings(folder, service_port, http_port, https_port):
    """Write nginx.conf with the addresses and folders of this test."""
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    places = " ".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    for old, new in (
        ("server setrnn:8000;", f"server 127.0.0.1:{service_port};"),
        ("listen 80 ", f"listen 127.0.0.1:{http_port} "),
        ("listen 443 ", f"listen 127.0.0.1:{https_port} "),
        ("/run/secrets/", f"{folder}/"),
        ("/run/nginx.pid", f"{folder}/nginx.pid"),
        ("http {", f"http {{ {places}"),
    ):
        assert old in text
        text = text.replace(old, new)
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(user + text, encoding="utf-8")


@pytest.fixture(scope="module")
def proxied(taggers, tmp_path_factory):
    """A client of nginx, and the port of nginx that does not do TLS."""
    folder = tmp_path_factory.mktemp("proxied")
    taggers["br"].save(folder / "model")
    (folder / "keys").write_text(KEY)
    make_certificate(folder)
    options = ("--api-key-file", folder / "keys", folder / "model")
    with running(folder / "log", *options) as service:
        http_port, https_port = free_port(), free_port()
        write_settings(folder, service.port, http_port, https_port)
        command = [NGINX, "-p", folder, "-c", folder / "nginx.conf", "-g", "daemon off;"]
        errors = folder / "nginx.log"
        with errors.open("w") as stream:
            nginx = subprocess.Popen(command, stderr=stream)
        try:
            wait_for(https_port, nginx, errors)
            context = ssl.create_default_context(cafile=str(folder / "tls.crt"))
            address = f"https://localhost:{https_port}"
            with httpx.Client(base_url=address, verify=context, timeout=30) as client:
                yield client, http_port
        finally:
            nginx.terminate()
            nginx.wait(30)


def wait_for(port, process, errors):
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(errors.read_text())


def test_plain_http_is_referred_to_tls(proxied):
    _, http_port = proxied
    answer = httpx.get(f"http://localhost:{http_port}/v1/models")
    assert answer.status_code == 308
    assert answer.headers["Location"].startswith("https://localhost/v1/models")


def test_requests_pass_with_a_key_only(proxied):
    client, _ = proxied
    body = json.dumps({"texts": ["Velmara lift trophy."]})
    answer = client.post("/v1/tag", content=body, headers=JSON)
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"]
    assert "Strict-Transport-Security" in answer.headers
    refused = client.post("/v1/tag", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 401


def test_metrics_stay_inside(proxied):
    client, _ = proxied
    assert client.get("/metrics", headers=JSON).status_code == 404


def test_a_large_body_is_refused_as_the_service_refuses_it(proxied):
    client, _ = proxied
    answer = client.post("/v1/tag", content=b" " * (5 << 20), headers=JSON)
    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == PROBLEM
    assert answer.json()["type"].endswith(":body-too-large")
    assert answer.json()["title"] == KINDS["body-too-large"][1]


def test_a_client_that_asks_too_often_is_told_when_to_come_back(proxied):
    client, _ = proxied
    answers = [client.get("/healthz") for _ in range(150)]
    statuses = [answer.status_code for answer in answers]
    assert {*statuses} == {200, 429}
    assert statuses.count(200) >= 20  # a burst passes
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.headers["Retry-After"] == "1"
    assert refused.headers["Content-Type"] == PROBLEM
    assert refused.json()["status"] == 429
