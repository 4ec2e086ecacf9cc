"""The page in Debian's Chromium: how tests open it, and read what it shows."""

import json
import shutil
from contextlib import contextmanager

import pytest

if shutil.which("chromium") is None:
    pytest.skip("chromium is not installed", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect

FAILED = "Failed to load resource"  # what the browser says of an answer that is no 200


@contextmanager
def opened(browser, site, *, may_fail=False, **options):
    """Open the page for a new visitor; afterwards nothing may have gone wrong or elsewhere."""
    troubles = []
    visit = browser.new_context(accept_downloads=True, **options)
    tab = visit.new_page()
    tab.set_default_timeout(8_000)
    expect.set_options(timeout=8_000)

    def heard(text):
        if not (may_fail and FAILED in text):
            troubles.append(text)

    tab.on("console", lambda message: heard(message.text))
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("dialog", lambda dialog: troubles.append(dialog.message))
    tab.on(
        "request",
        lambda request: (
            request.url.startswith((site.address, "blob:", "data:")) or troubles.append(request.url)
        ),
    )
    visit_page(tab, site)
    yield tab
    visit.close()
    assert troubles == []


def visit_page(tab, site):
    tab.goto(site.address)
    tab.wait_for_selector("html[data-ready]")


def tag(tab, text):
    """Tag a text as a person does, and wait for all that is shown of it."""
    tab.fill("#text", text)
    tab.press("#text", "Control+Enter")
    tab.wait_for_selector("#results:not([hidden])")


def drop(tab, name, content):
    """Drop a file onto the page."""
    content = content if isinstance(content, bytes) else content.encode()
    tab.evaluate(
        """([name, bytes]) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], name));
            document.body.dispatchEvent(
                new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
        }""",
        [name, list(content)],
    )


def open_queue(tab, rows, name="news.jsonl"):
    """Drop documents as a queue, and wait for the first."""
    drop(tab, name, "".join(json.dumps(row) + "\n" for row in rows))
    tab.wait_for_selector("#queue:not([hidden])")
    tab.wait_for_selector("#results:not([hidden])")


def chips(tab, *states):
    """Return the labels of the set by their states, in the order shown."""
    states = states or ("accepted", "proposed")
    css = ", ".join(f"#set .is-{state} bdi" for state in states)
    return tab.locator(css).all_text_contents()


def settled(tab):
    """Wait until what was decided has been answered."""
    tab.wait_for_selector("#results:not([hidden]):not([aria-busy])")


def suggested(tab):
    return tab.locator("#suggestion strong").text_content()


def percent(probability):
    """Write a probability as the page does."""
    value = 100 * probability
    if 99.95 <= value < 100:
        return "> 99.9%"
    return "< 0.1%" if 0 < value < 0.1 else f"{value:.1f}%"
