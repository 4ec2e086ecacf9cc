"""nginx with the files of deploy/, at the addresses of a test."""

import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def replace_all(text, changes):
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextmanager
def proxying(folder, conf, changes):
    """Run nginx with a file of deploy/, with the addresses and folders of this test."""
    text = replace_all((DEPLOY / conf).read_text(encoding="utf-8"), changes)
    user = "user root;\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(user + text, encoding="utf-8")
    command = [NGINX, "-p", folder, "-c", folder / "nginx.conf", "-g", "daemon off;"]
    errors = folder / "nginx.log"
    with errors.open("w") as stream:
        nginx = subprocess.Popen(command, stderr=stream)
    try:
        for port in map(int, re.findall(r"listen 127\.0\.0\.1:(\d+)", text)):
            wait_for(port, nginx, errors)
        yield
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
