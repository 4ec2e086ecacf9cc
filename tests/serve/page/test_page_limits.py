"""The page before servers that take less, and models that are asked too much or replaced."""

from collections import namedtuple
from contextlib import contextmanager
from dataclasses import replace

import pytest

from page.page_site import another, chips, expect, open_queue, serving, tag
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.settings import ServeSettings

TEXT = "Velmara held their nerve on Monday night to beat Palmeda 1-0 and lift the trophy."
Server = namedtuple("Server", "address")


@contextmanager
def page_of(kept_tab, registry, may_fail=False, **settings):
    with (
        serving(registry, settings=ServeSettings(**settings)) as address,
        another(kept_tab, Server(address), may_fail=may_fail) as tab,
    ):
        yield tab


@pytest.fixture
def registry(site):
    return Registry.of(ServedModel("small", "v1", site.tagger))


def test_a_text_is_cut_to_what_the_server_takes(kept_tab, site, registry):
    with page_of(kept_tab, registry, max_words=8, max_texts=2) as tab:
        tag(tab, TEXT)
        beginning = " ".join(TEXT.split()[:8])
        assert chips(tab) == list(site.tagger.tag([beginning])[0].labels)
        expect(tab.locator("#cut")).to_contain_text(f"first {len(beginning)} of {len(TEXT)}")
        tab.click("#new")
        tag(tab, " ".join(TEXT.split()[:8]) + "\n")
        expect(tab.locator("#cut")).to_be_hidden()
        rows = [{"id": f"n{i}", "text": TEXT + "\x85x\x1fx" * i} for i in range(5)]
        open_queue(tab, rows)
        tab.select_option("#order", "accepted-first")
        expect(tab.locator("#queue-hint")).to_contain_text("of 5 documents")  # and no request fails


def renamed(tagger):
    """The tagger with other names for its labels."""
    names = tuple(f"new-{name}" for name in tagger.labels.names)
    return replace(tagger, labels=replace(tagger.labels, names=names))


def test_a_model_that_is_replaced_predicts_at_once(kept_tab, registry, site):
    with page_of(kept_tab, registry, may_fail=True) as tab:
        tag(tab, TEXT)
        label = chips(tab)[0]
        another = renamed(site.classical)
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
