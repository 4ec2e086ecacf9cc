"""The site is built without the network, and its links, anchors and reference hold."""

import html
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from doc_pages import ROOT

pytest.importorskip("zensical")

import setrnn
from setrnn.cli.app import COMMANDS
from setrnn.config import Config, flatten, to_dict
from setrnn.methods import METHODS

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
KINDS_LOADED = {"stylesheet", "icon", "preload", "preconnect", "modulepreload", "dns-prefetch"}


class Page(HTMLParser):
    """The links of a page, the anchors in it, and what a browser loads for it."""

    def __init__(self, file):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.update({found.get("id"), found.get("name")})
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        kinds = set((found.get("rel") or "stylesheet").split())
        place = found.get(LOADED.get(tag, ""))
        if place and (tag != "link" or kinds & KINDS_LOADED):
            self.loaded.append(place)


@pytest.fixture(scope="module")
def site(make_once):
    """The site, built once."""

    def make(folder):
        room = folder.with_name("unfinished-site")
        pages, settings = room / "pages", room / "mkdocs.yml"
        run(sys.executable, ROOT / "tools/site/pages.py", pages)
        text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
        text = text.replace("build/", "")
        settings.write_text(text, encoding="utf-8")
        run(Path(sys.executable).with_name("zensical"), "build", "--strict", "-f", settings)
        (room / "site").rename(folder)

    return make_once("site", make)


def run(*words):
    ended = subprocess.run([*map(str, words)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def pages(site):
    files = {file.relative_to(site).as_posix(): file for file in site.rglob("*.html")}
    del files["404.html"]  # served at any address: its links begin at the root
    return {name: Page(file) for name, file in files.items()}


def test_links_and_anchors_lead_somewhere(site, pages):
    for here, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            place = (site / here).parent / unquote(parts.path) if parts.path else site / here
            place = place.resolve()
            place = place / "index.html" if place.is_dir() else place
            assert place.is_file(), f"{here} links to {link}"
            if parts.fragment and place.suffix == ".html":
                target = pages[place.relative_to(site.resolve()).as_posix()]
                assert unquote(parts.fragment) in target.anchors, f"{here} links to {link}"


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for here, page in pages.items():
        for place in page.loaded:
            assert not urlsplit(place).netloc, f"{here} loads {place}"
            assert ((site / here).parent / urlsplit(place).path).exists(), f"{here} loads {place}"
    for file in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", file.read_text()), file.name


def test_the_reference_has_every_name(site):
    text = {
        each: (site / f"reference/{each}.html").read_text()
        for each in ("commands", "settings", "api", "methods")
    }
    for name in COMMANDS:
        assert f'id="setrnn-{name}"' in text["commands"]
    for name in flatten(to_dict(Config())):
        assert f"<code>{name}</code>" in text["settings"], name
    for name in set(setrnn.__all__) - {"__version__"}:
        assert f'id="setrnn{name.lower()}"' in text["api"], name
    for name, method in METHODS.items():
        assert f"<code>{name}</code>" in text["methods"], name
        assert f"<td>{html.escape(method.prediction)}</td>" in text["methods"], name
