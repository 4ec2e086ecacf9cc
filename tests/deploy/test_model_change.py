"""Two services behind nginx change over to a new model, as docs/serve.md says."""

import re
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from nginx import DEPLOY, NGINX, free_port, needs_nginx, proxying

from service_process import Forked, running
from setrnn.models.folder import read_version

PAGE = (DEPLOY.parent / "docs" / "serve.md").read_text(encoding="utf-8")
(RETRY,) = re.findall(r"`(proxy_next_upstream [^`]+)`", PAGE)
(COMMANDS,) = re.findall(r"```bash\n(before=.*?)```", PAGE, re.DOTALL)

pytestmark = [pytest.mark.slow, needs_nginx]


@pytest.fixture
def folder(taggers, tmp_path):
    """A folder with the model that is served, models/news, and another one, next."""
    taggers["br"].save(tmp_path / "models" / "news")
    taggers["br-support"].save(tmp_path / "next")
    return tmp_path


@contextmanager
def group_of(folder, model):
    """Two services of one model."""
    with ExitStack() as stack:
        logs = [folder / f"{model.name}-{n}.log" for n in range(2)]
        yield [stack.enter_context(running(log, f"news={model}")) for log in logs]


@pytest.fixture
def services(folder):
    with group_of(folder, folder / "models" / "news") as found:
        yield found


@pytest.fixture
def address(folder, services):
    """The address of nginx in front of the services."""
    port = free_port()
    changes = {
        "server 127.0.0.1:8000 max_fails=0;": "".join(
            f"server 127.0.0.1:{each.port} max_fails=0;" for each in services
        ),
        "listen 8080 ": f"listen 127.0.0.1:{port} ",
        "/tmp/": f"{folder}/",
        "location / {": f"location / {{ {RETRY};",
    }
    with proxying(folder, "kubernetes/nginx.conf", changes):
        yield f"http://127.0.0.1:{port}"


def ask(address):
    """Return the version of the model that answers."""
    answer = httpx.post(f"{address}/v1/tag", json={"texts": ["Velmara lift trophy."]}, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()["model"]["version"]


def ask_often(address):
    return {ask(address) for _ in range(30)}


@contextmanager
def asked_meanwhile(address):
    """Yield the versions that answer meanwhile, in their order; every request is answered."""
    versions, failures, is_done = [], [], threading.Event()

    def ask_on():
        try:
            while not is_done.is_set():
                versions.append(ask(address))
        except Exception as error:  # noqa: BLE001 (raised below)
            failures.append(error)

    asking = threading.Thread(target=ask_on)
    asking.start()
    try:
        yield versions
    finally:
        is_done.set()
        asking.join()
    assert failures == []


def test_services_that_are_reloaded_in_turn_end_with_the_new_model(folder, services, address):
    old, new = read_version(folder / "models" / "news"), read_version(folder / "next")
    commands = re.sub(r"setrnn train .*", "rm -r models/news && mv next models/news", COMMANDS)
    for port, each in zip(("8000", "8001"), services, strict=True):
        commands = commands.replace(port, str(each.port))
        (folder / f"{each.port}.pid").write_text(str(each.process.pid))
    assert ask_often(address) == {old}
    with asked_meanwhile(address) as versions:
        subprocess.run(["bash", "-c", commands], cwd=folder, check=True, timeout=60)
    assert old in versions  # on a busy machine, perhaps no other in that time
    assert {*versions} <= {old, new}
    assert ask_often(address) == {new}


def test_a_second_group_takes_over_when_nginx_is_reloaded(folder, services, address):
    old, new = read_version(folder / "models" / "news"), read_version(folder / "next")
    conf = folder / "nginx.conf"
    with group_of(folder, folder / "next") as others, asked_meanwhile(address) as versions:
        text = conf.read_text()
        while not versions:
            time.sleep(0.05)
        for each, other in zip(services, others, strict=True):
            assert other.client.get("/readyz").status_code == 200
            text = text.replace(f":{each.port} ", f":{other.port} ")
        conf.write_text(text)
        master = (folder / "nginx.pid").read_text().strip()
        children = Path(f"/proc/{master}/task/{master}/children")
        workers = children.read_text().split()
        subprocess.run([NGINX, "-p", folder, "-c", conf, "-s", "reload"], check=True)
        while {*workers} & {*children.read_text().split()}:
            time.sleep(0.05)
        assert ask_often(address) == {new}
        for each in services:
            assert each.end() == 0
        assert ask_often(address) == {new}
    assert old in versions
    assert {*versions} <= {old, new}


def test_a_model_that_cannot_be_loaded_stops_no_service(folder, services, address):
    old = read_version(folder / "models" / "news")
    arrays = folder / "models" / "news" / "model.safetensors"
    config = folder / "models" / "news" / "config.json"
    config.write_bytes((folder / "next" / "config.json").read_bytes())
    arrays.write_bytes(arrays.read_bytes()[:100])
    for each in services:
        each.process.send_signal(signal.SIGHUP)
        each.wait_for(f"not loaded, {old} stays")
    assert ask_often(address) == {old}
    first, second = services
    with asked_meanwhile(address):
        first.process.kill()
        first.process.wait()
    again = Forked(
        ["serve", str(folder / "models" / "news"), "--port", str(first.port)], folder / "again.log"
    )
    assert again.wait(60) == 1
    assert ask_often(address) == {old}
    assert second.client.get("/readyz").status_code == 200
