"""The page in Debian's Chromium: how tests open it, and read what it shows."""

import json
import shutil
import socket
import threading
import time
from contextlib import contextmanager

import pytest

if shutil.which("chromium") is None:
    pytest.skip("chromium is not installed", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright.expect

FAILED = "Failed to load resource"  # what the browser says of an answer that is no 200
SCREEN = {"width": 960, "height": 600}  # wide enough for two columns, and soon drawn
SECONDS = 20  # to wait for what must come, on a busy machine


@contextmanager
def serving(registry, port=0, **options):
    """Serve models in a thread of this process, and yield the address."""
    import uvicorn

    from setrnn.serve.server import make_app

    listener = socket.create_server(("127.0.0.1", port))
    app = make_app(registry, **options)
    server = uvicorn.Server(uvicorn.Config(app, ws="none", log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def opened(browser, site, *, script=None, may_fail=False, may_ask=False, **options):
    """Open the page for a new visitor."""
    # What moves is drawn many times.
    options = {"viewport": SCREEN, "reduced_motion": "reduce", **options}
    may = {"may_fail": may_fail, "may_ask": may_ask}
    with (
        browser.new_context(accept_downloads=True, **options) as visit,
        another(visit, site, script=script, **may) as tab,
    ):
        yield tab


@contextmanager
def another(visit, site, *, script=None, **may):
    """Open the page in another tab of a visitor, after a script."""
    tab = visit.new_page()
    if script is not None:
        tab.add_init_script(script)
    with watched(tab, site, **may):
        visit_page(tab, site)
        yield tab
        tab.close()


@contextmanager
def watched(tab, site, *, may_fail=False, may_ask=False):
    """Watch a tab: nothing may go wrong or elsewhere."""
    troubles = []
    tab.set_default_timeout(SECONDS * 1000)
    expect.set_options(timeout=SECONDS * 1000)

    def check(request):
        if not request.url.startswith((site.address, "blob:", "data:")):
            troubles.append(request.url)

    def hear(message):
        if not (may_fail and FAILED in message.text):
            troubles.append(message.text)

    listeners = {
        "console": hear,
        "pageerror": lambda error: troubles.append(str(error)),
        "request": check,
    }
    if not may_ask:
        listeners["dialog"] = lambda dialog: (troubles.append(dialog.type), dialog.dismiss())
    for event, listener in listeners.items():
        tab.on(event, listener)
    yield tab
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
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


def wait_for(tab, name):
    """Wait for a document of a queue."""
    expect(tab.locator("#document-title")).to_have_text(name)
    settled(tab)


def exported(tab):
    """Export, and return the name of the file and what is in it."""
    with tab.expect_download() as waiting:
        tab.click("#export")
    lines = waiting.value.path().read_text(encoding="utf-8").splitlines()
    return waiting.value.suggested_filename, [json.loads(line) for line in lines]
