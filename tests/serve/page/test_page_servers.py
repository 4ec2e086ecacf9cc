"""The page before servers that ask for keys, refuse, are full, take less, or come back."""

import json
import threading
import time
import urllib.request
from collections import namedtuple
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from page.page_site import (
    chips,
    drop,
    expect,
    exported,
    open_queue,
    opened,
    serving,
    settled,
    suggested,
    tag,
    wait_for,
)
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.settings import ApiKeys, ServeSettings

TEXT = "Velmara held their nerve on Monday night to beat Palmeda 1-0 and lift the trophy."
SLOW = "A text that takes its time."

Server = namedtuple("Server", "address")


@contextmanager
def page_of(browser, registry, **options):
    """Open the page of a server of its own, which may fail."""
    with (
        serving(registry, **options) as address,
        opened(browser, Server(address), may_fail=True) as tab,
    ):
        tab.server = address
        yield tab


@pytest.fixture
def registry(site):
    return Registry.of(ServedModel("small", "v1", site.tagger))


def give_key(tab, key):
    expect(tab.locator("#key")).to_be_focused()
    tab.keyboard.type(key)
    tab.keyboard.press("Enter")


def test_a_key_is_asked_for_and_what_was_wanted_goes_on(browser, site, registry, tmp_path):
    file = tmp_path / "keys"
    file.write_text("the-first-of-the-keys")
    keys = ApiKeys(file)
    with page_of(browser, registry, keys=keys) as tab:
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


def test_a_full_server_is_asked_again_without_the_person(browser, site, registry, monkeypatch):
    is_free, has_begun = threading.Event(), threading.Event()
    tag = ServedModel.tag

    def tag_slowly(model, documents, *arguments):
        if any(text == SLOW for text, _ in documents):
            has_begun.set()
            is_free.wait(60)
        return tag(model, documents, *arguments)

    monkeypatch.setattr(ServedModel, "tag", tag_slowly)
    settings = ServeSettings(queue=1, batch=1, batch_ms=0, workers=1)
    with page_of(browser, registry, settings=settings) as tab:
        address = tab.server
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


def test_decisions_outlive_a_server_that_stops_and_comes_back(browser, registry, site, test_texts):
    rows = [{"id": f"n{i}", "text": text} for i, text in enumerate(test_texts[:4])]
    with ExitStack() as stack:
        server = ExitStack()
        address = server.enter_context(serving(registry))
        port = int(address.rstrip("/").rpartition(":")[2])
        tab = stack.enter_context(opened(browser, Server(address), may_fail=True))
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


def test_a_model_that_is_replaced_predicts_at_once(browser, registry, site):
    with page_of(browser, registry) as tab:
        tag(tab, TEXT)
        label = chips(tab)[0]
        labels = site.classical.labels
        names = tuple(f"new-{name}" for name in labels.names)
        another = replace(site.classical, labels=replace(labels, names=names))
        registry._models["small"] = ServedModel("small", "v2", another)
        tab.click(f'#set .label[data-label="{label}"]')
        expect(tab.locator("#set-hint")).to_contain_text("The model was replaced")
        assert tab.is_hidden("#trouble")
        assert tab.text_content("#about").startswith("br, ")
        assert chips(tab, "accepted") == [label]  # is kept, and new to the model
        assert chips(tab, "proposed") == list(another.tag([TEXT])[0].labels)
        expect(tab.locator("#set .is-accepted small")).to_have_text("new")
        tab.click("#new")
        registry._models["small"] = ServedModel("small", "v3", site.tagger)
        tag(tab, TEXT)
        assert chips(tab) == list(site.tagger.tag([TEXT])[0].labels)
        assert tab.text_content("#about").startswith("set-rnn, ")


def answering(status, detail):
    """Make a handler that answers with a problem."""
    problem = json.dumps({"type": "x", "title": "T", "status": status, "detail": detail})
    kind = "application/problem+json"
    return lambda route: route.fulfill(status=status, content_type=kind, body=problem)


def test_a_refusal_is_said_in_the_servers_words(browser, site):
    with opened(browser, site, may_fail=True) as tab:
        for status, detail, said in [
            (413, "A request may have 4,194,304 bytes.", "too large for the server. A request may"),
            (422, "The model has no label 'x'. Did you mean 'y'?", "Did you mean 'y'?"),
            (422, "<img src=x onerror=alert(1)>", "<img src=x"),
            (500, "Something failed.", "Something failed."),
        ]:
            tab.route("**/v1/tag", answering(status, detail))
            tab.fill("#text", TEXT)
            tab.press("#text", "Control+Enter")
            expect(tab.locator("#trouble:visible")).to_contain_text(said)
            assert tab.is_hidden("#results")
            assert tab.locator("#trouble img").count() == 0
            tab.click("#edit")
            expect(tab.locator("#trouble")).to_be_hidden()


def test_what_training_warned_of_is_above_the_page(browser, site):
    warning = "The model has learned <b>little</b>."
    model = replace(site.tagger, notes={**site.tagger.notes, "warnings": [warning]})
    plain = replace(site.tagger, notes={})
    models = [ServedModel("weak", "v1", model), ServedModel("plain", "v2", plain)]
    with page_of(browser, Registry.of(*models)) as tab:
        expect(tab.locator("#warnings")).to_be_visible()
        expect(tab.locator("#warnings p")).to_have_text([warning])
        tab.select_option("#model", "plain")
        expect(tab.locator("#warnings")).to_be_hidden()


def test_the_columns_of_the_training_data_are_chosen_where_a_file_is_opened(browser, site):
    columns = {"text_field": "note", "labels_field": "kind"}
    model = replace(site.tagger, notes={**site.tagger.notes, "columns": columns})
    with page_of(browser, Registry.of(ServedModel("own", "v1", model))) as tab:
        drop(tab, "shop.csv", "text,note,kind\nx,A storm in Palmeda,weather\n")
        tab.wait_for_selector("#table[open]")
        assert tab.locator("#table-texts :checked").count() == 1
        expect(tab.locator("#table-preview li")).to_contain_text("A storm in Palmeda")
        expect(tab.locator("#table-preview .tag")).to_have_text(["weather"])
