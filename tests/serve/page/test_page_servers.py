"""The page before servers that ask for keys, are full, or come back."""

import threading
import time
import urllib.request
from collections import namedtuple
from contextlib import ExitStack

import pytest

from page.page_site import (
    another,
    chips,
    expect,
    exported,
    open_queue,
    serving,
    settled,
    suggested,
    tag,
    wait_for,
)
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.settings import ApiKeys, ServeSettings
from setrnn.serve.work import Tagging

TEXT = "Velmara held their nerve on Monday night to beat Palmeda 1-0."
SLOW = "A text that takes its time."

Server = namedtuple("Server", "address")


@pytest.fixture
def registry(site):
    return Registry.of(ServedModel("small", "v1", site.tagger))


def give_key(tab, key):
    expect(tab.locator("#key")).to_be_focused()
    tab.keyboard.type(key)
    tab.keyboard.press("Enter")


def test_a_key_is_asked_for_and_what_was_wanted_goes_on(kept_tab, site, registry, tmp_path):
    file = tmp_path / "keys"
    file.write_text("the first of the keys".replace(" ", "-"))
    keys = ApiKeys(file)
    with (
        serving(registry, keys=keys) as address,
        another(kept_tab, Server(address), may_fail=True) as tab,
    ):
        give_key(tab, "wrong")
        expect(tab.locator("#key-hint")).to_contain_text("does not accept this key")
        give_key(tab, "the-first-of-the-keys")
        expect(tab.locator("#key-form")).to_be_hidden()
        tag(tab, TEXT)
        assert chips(tab) == list(site.tagger.tag([TEXT])[0].labels)
        file.write_text("another-key-from-now-on")
        keys.load()
        label = suggested(tab)
        tab.keyboard.press("y")
        expect(tab.locator("#key-hint")).to_contain_text("does not accept this key")
        give_key(tab, "another-key-from-now-on")
        expect(tab.locator("#key-form")).to_be_hidden()
        settled(tab)
        assert set(chips(tab)) == set(site.tagger.complete(TEXT, present=[label]).labels)
        assert tab.is_hidden("#trouble")
        kept = tab.evaluate(
            "[Object.values(sessionStorage), Object.values(localStorage)].map(String)"
        )
        assert "another-key-from-now-on" in kept[0]
        assert "key" not in kept[1]  # only this tab has it


def test_a_full_server_is_asked_again_without_the_person(kept_tab, site, registry, monkeypatch):
    is_free, has_begun = threading.Event(), threading.Event()
    run = Tagging.run

    def run_slowly(self, documents):
        if any(text == SLOW for text, _ in documents):
            has_begun.set()
            is_free.wait(60)
        return run(self, documents)

    monkeypatch.setattr(Tagging, "run", run_slowly)
    settings = ServeSettings(queue=1, batch=1, batch_ms=0, workers=1)
    with (
        serving(registry, settings=settings) as address,
        another(kept_tab, Server(address), may_fail=True) as tab,
    ):
        asking = [threading.Thread(target=post, args=(address, SLOW)) for _ in range(2)]
        try:
            asking[0].start()
            assert has_begun.wait(60)
            asking[1].start()
            while 'setrnn_queue_documents{model="small"} 1.0' not in get(address + "metrics"):
                time.sleep(0.01)
            tab.fill("#text", TEXT)
            tab.press("#text", "Control+Enter")
            trouble = tab.locator("#trouble:visible")
            expect(trouble).to_contain_text("The server is busy. The queue is full.")
            expect(trouble).to_contain_text("Trying again in")
        finally:
            is_free.set()
        settled(tab)
        assert tab.is_hidden("#trouble")
        assert chips(tab) == list(site.tagger.tag([TEXT])[0].labels)
        for each in asking:
            each.join(60)


def get(address):
    with urllib.request.urlopen(address) as answer:
        return answer.read().decode()


def post(address, text):
    body = f'{{"texts": ["{text}"]}}'.encode()
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(address + "v1/tag", body, headers)).close()


def test_decisions_outlive_a_server_that_stops_and_comes_back(kept_tab, registry, site, test_texts):
    rows = [{"id": f"n{i}", "text": text} for i, text in enumerate(test_texts[:4])]
    with ExitStack() as stack:
        server = ExitStack()
        address = server.enter_context(serving(registry))
        port = int(address.rstrip("/").rpartition(":")[2])
        tab = stack.enter_context(another(kept_tab, Server(address), may_fail=True))
        open_queue(tab, rows)
        server.close()
        tab.keyboard.press("d")
        expect(tab.locator("#document-title")).to_have_text("n1")
        expect(tab.locator("#trouble:visible")).to_contain_text("The server does not answer")
        assert tab.is_hidden("#results")
        server = stack.enter_context(ExitStack())
        server.enter_context(serving(registry, port))
        tab.click("#trouble >> text=Try again")
        settled(tab)
        assert tab.is_hidden("#trouble")
        assert chips(tab) == list(site.tagger.tag([rows[1]["text"]])[0].labels)
        server.close()
        label = suggested(tab)
        tab.keyboard.press("y")
        expect(tab.locator("#trouble:visible")).to_contain_text("The server does not answer")
        assert chips(tab, "accepted") == [label]
        stack.enter_context(serving(registry, port))
        tab.click("#trouble >> text=Try again")
        settled(tab)
        assert tab.is_hidden("#trouble")
        found = site.tagger.complete(rows[1]["text"], present=[label])
        assert set(chips(tab)) == set(found.labels)
        tab.keyboard.press("d")
        wait_for(tab, "n2")
        assert [line["id"] for line in exported(tab)[1]] == ["n0", "n1"]
