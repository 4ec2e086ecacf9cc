"""Slips of people, files and browsers: odd rows, damaged notes, keys that cannot be sent."""

import json

from page.page_site import (
    chips,
    drop,
    expect,
    exported,
    open_queue,
    settled,
    suggested,
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


def test_a_new_order_leaves_the_document_at_hand(tab, site, test_texts):
    rows = [{"id": f"n{i}", "text": text} for i, text in enumerate(test_texts[:5])]
    predictions = site.tagger.tag([row["text"] for row in rows])
    order = sorted(range(5), key=lambda i: (predictions[i].accepted, predictions[i].probability))
    open_queue(tab, rows)
    while tab.text_content("#document-title") != f"n{order[-1]}":  # it would have come last
        tab.keyboard.press("j")
        settled(tab)
    tab.select_option("#order", "accepted-last")
    tab.locator("#order").blur()
    label = suggested(tab)
    tab.keyboard.press("y")
    expect(tab.locator("#queue-hint")).to_contain_text("The model accepts")
    settled(tab)
    assert tab.text_content("#document-title") == f"n{order[-1]}"
    assert chips(tab, "accepted") == [label]
    tab.keyboard.press("d")
    wait_for(tab, f"n{order[0]}")
    tab.select_option("#order", "file")
    expect(tab.locator("#queue-place")).to_have_text(f"{order[0] + 1} of 5")
    assert tab.text_content("#document-title") == f"n{order[0]}"


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
