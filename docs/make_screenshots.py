"""Make the pictures of the page from a real server with a small set-rnn.

python docs/make_screenshots.py [MODEL]     # without one, it is trained (two minutes)
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from setrnn.data import newsroom

HERE = Path(__file__).parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]  # as root, in a container
DESKTOP: dict[str, Any] = {"viewport": {"width": 1200, "height": 860}, "color_scheme": "light"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "color_scheme": "dark",
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
UNSURE = "synthetic-005527"  # a virus: of people or of computers?
N_QUEUE = 40


def run(*command: str) -> None:
    """Run a setrnn command."""
    subprocess.run(
        [sys.executable, "-m", "setrnn", *command], check=True, stdout=subprocess.DEVNULL
    )


@contextmanager
def served(model: Path) -> Iterator[str]:
    """Serve a model; give its address once it answers."""
    command = [sys.executable, "-m", "setrnn", "serve", str(model), "--port", "0"]
    command += ["--device", "cpu"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, **pipes) as server:
        address = ""
        for line in server.stdout or ():
            if found := re.search(r"http://[^\s,]+", line):
                address = found[0]
            if line.startswith("Ready"):
                break
        try:
            yield address
        finally:
            server.terminate()


def opened(browser: Browser, address: str, **options: Any) -> Page:  # noqa: ANN401
    """Open the page for a new visitor."""
    page = browser.new_context(**options).new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def settled(page: Page) -> None:
    """Wait until all is shown."""
    page.wait_for_selector("#results:not([hidden]):not([aria-busy])")
    page.wait_for_selector("#orders .track")
    page.wait_for_timeout(400)


def draw_document(browser: Browser, address: str, text: str) -> None:
    """Draw one document with the words of a label."""
    page = opened(browser, address, **DESKTOP)
    page.select_option("#rule", "set")
    page.fill("#text", text)
    page.press("#text", "Control+Enter")
    settled(page)
    page.screenshot(path=HERE / "page.png")
    page.keyboard.press("n")
    settled(page)
    page.keyboard.press("y")
    settled(page)
    page.screenshot(path=HERE / "page-completed.png")


def draw_columns(browser: Browser, address: str) -> None:
    """Draw the choice of the columns of the example file."""
    page = opened(browser, address, **DESKTOP)
    page.click("#example-file")
    page.wait_for_selector("#table[open]")
    page.wait_for_timeout(400)
    page.screenshot(path=HERE / "page-columns.png")


def draw_queue(browser: Browser, address: str, rows: list[dict[str, str]]) -> None:
    """Draw a queue on a phone, with a few documents done."""
    page = opened(browser, address, **PHONE)
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    file = {"name": "news.jsonl", "mimeType": "application/jsonl", "buffer": content}
    page.set_input_files("#file", files=[file])  # type: ignore[list-item]
    settled(page)
    page.select_option("#order", "accepted-last")
    page.wait_for_selector("#queue-hint:has-text('accepts')")
    settled(page)
    for _ in range(2):
        page.tap("#done")
        settled(page)
    page.tap("#suggestion .accept")
    settled(page)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=HERE / "page-phone.png")


def main(model: Path | None) -> None:
    """Make them all."""
    examples = {each.id: each for each in islice(newsroom.examples("test"), 400)}
    rows = [{"id": str(each.id), "text": each.text} for each in islice(examples.values(), N_QUEUE)]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        if model is None:
            quick = ("compare", "newsroom", "--quick", "--methods", "set-rnn")
            run(*quick, "--out", f"{folder}/quick")
            model = Path(folder) / "quick/models/set-rnn-0"
        copy = Path(folder) / "set-rnn"
        shutil.copytree(model, copy)
        for rule in ("f1", "set"):
            run("calibrate", str(copy), "newsroom", "--target-accuracy", "0.9", "--rule", rule)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        with served(copy) as address:
            draw_document(browser, address, examples[UNSURE].text)
            draw_columns(browser, address)
            draw_queue(browser, address, rows)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
