"""Slips of people, files and browsers: odd rows, damaged notes, keys that cannot be sent."""

import json

from page.page_site import (
    chips,
    drop,
    expect,
    exported,
    open_queue,
    settled,
    tag,
    visit_page,
    wait_for,
)
from setrnn.data.read import BadRows, open_dataset

TEXT = "Velmara held their nerve on Monday night to beat Palmeda 1-0 and lift the trophy."
DAMAGED = (
    'localStorage.setItem("setrnn-choice", "{"); sessionStorage.setItem("setrnn-api-key", "п")'
)


def test_what_was_read_can_be_trained_on_as_it_came(tab, tmp_path):
    rows = [
        {"id": 17, "text": TEXT, "labels": ["", "sport", " "], "features": [""]},
        {"id": 1.5, "text": TEXT},
        {"id": 2**60, "text": TEXT},
        {"id": "half", "text": "\ud83d \0 \U0001f600", "labels": ["\ud83d"]},
    ]
    open_queue(tab, rows)
    expect(tab.locator("#queue-hint")).to_contain_text("Lines 2, 3: 'id' must be a string, or a")
    assert chips(tab, "accepted") == ["sport"]
    shown = chips(tab)
    tab.keyboard.press("d")
    wait_for(tab, "half")
    tab.keyboard.press("d")
    expect(tab.locator("#export")).to_have_text("Export 2")
    lines = exported(tab)[1]
    assert lines[0] == {"id": 17, "text": TEXT, "labels": shown}
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    first, second = open_dataset(tmp_path / "train.jsonl").require("train").read(BadRows())
    assert (first.id, set(first.labels)) == ("17", set(shown))
    assert second.text == "\ufffd \ufffd \U0001f600"


def test_a_text_that_was_decided_about_is_not_replaced_without_a_question(tab):
    tag(tab, TEXT)
    tab.keyboard.press("y")
    settled(tab)
    accepted = chips(tab, "accepted")
    for replace in (
        lambda: drop(tab, "news.jsonl", '{"id": "n0", "text": "other"}\n'),
        lambda: drop(tab, "other.txt", "other"),
        lambda: tab.keyboard.press("e"),
    ):
        replace()
        expect(tab.locator("#question")).to_contain_text("decisions about this text are lost")
        tab.click("#question >> text=Cancel")
        assert chips(tab, "accepted") == accepted
    drop(tab, "news.jsonl", '{"id": "n0", "text": "other"}\n')
    tab.click("#question-yes")
    wait_for(tab, "n0")


def test_a_damaged_browser_starts_and_a_key_that_cannot_be_sent_is_asked_for_again(tab, site):
    tab.evaluate(DAMAGED)
    visit_page(tab, site)
    expect(tab.locator("#key-hint")).to_contain_text("does not accept this key")
    tab.fill("#key", "plain")
    tab.keyboard.press("Enter")
    expect(tab.locator("#key-form")).to_be_hidden()
    tag(tab, TEXT)
    assert chips(tab) == list(site.tagger.tag([TEXT])[0].labels)
