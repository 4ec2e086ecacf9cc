"""A server with small models for the page, and the browser it is opened in."""

import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from setrnn.tagging.trust.acceptance import Acceptance
from small_taggers import with_thresholds

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]  # as root, in a container

Site = namedtuple("Site", "address tagger classical")


def pytest_collection_modifyitems(items):
    """Give a test in the browser a second chance: on a busy machine a frame can come late."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="package")
def browser():
    """One browser for all tests of the page; its event loop must end before other tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def tab(browser, site):
    """The page, for a new visitor; nothing may go wrong."""
    from page.page_site import opened

    with opened(browser, site) as tab:
        yield tab


@pytest.fixture(scope="session")
def site(taggers, test_texts):
    """A server of two models: `small`, which accepts some of its sets, and `classical`."""
    pytest.importorskip("uvicorn", reason="the extra 'serve' is not installed")
    from page.page_site import serving
    from setrnn.serve.registry import Registry, ServedModel

    small, classical = accepting_half(taggers["set-rnn"], test_texts), taggers["br"]
    models = ServedModel("small", "v1", small), ServedModel("classical", "v2", classical)
    with serving(Registry.of(*models)) as address:
        yield Site(address, small, classical)


@pytest.fixture(scope="session")
def ambiguous_text(site, test_texts):
    """The text with the most probable alternative set: the page lists none below 0.1%."""
    found = site.tagger.tag(test_texts, top=2)
    probs = [max((other.probability for other in each.alternatives), default=0) for each in found]
    assert max(probs) > 0.001
    return test_texts[probs.index(max(probs))]


def accepting_half(tagger, texts):
    """The tagger, with half of what it predicts for these texts in no need of a second look."""
    threshold = median(each.probability for each in tagger.tag(texts))
    tagger = with_thresholds(tagger)
    acceptance = Acceptance("set", 0.9, 0.9, threshold, 0.5, 0.95, 50)
    return replace(tagger, calibration=replace(tagger.calibration, acceptance={"set": acceptance}))
