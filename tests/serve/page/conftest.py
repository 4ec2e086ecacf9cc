"""A server with small models for the page, and the browser it is opened in."""

import shutil
import socket
import threading
import time
from collections import namedtuple
from dataclasses import replace
from statistics import median

import pytest

from setrnn.calibration import Acceptance
from small_taggers import with_thresholds

CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]  # as root, in a container

Site = namedtuple("Site", "address tagger classical")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(taggers, test_texts):
    """A server of two models: `small`, which accepts some of its sets, and `classical`."""
    uvicorn = pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
    from setrnn.serve.app import make_app
    from setrnn.serve.registry import Registry, ServedModel

    small, classical = accepting_half(taggers["set-rnn"], test_texts), taggers["br"]
    models = ServedModel("small", "v1", small), ServedModel("classical", "v2", classical)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(make_app(Registry.of(*models)), log_level="critical", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}/", small, classical)
    server.should_exit = True
    thread.join(10)


def accepting_half(tagger, texts):
    """The tagger, with half of what it predicts for these texts in no need of a second look."""
    threshold = median(each.probability for each in tagger.tag(texts))
    tagger = with_thresholds(tagger)
    acceptance = Acceptance("set", 0.9, 0.9, threshold, 0.5, 0.95, 50)
    return replace(tagger, calibration=replace(tagger.calibration, acceptance={"set": acceptance}))
