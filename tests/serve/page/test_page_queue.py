"""Many documents on the page: gone through, accepted at once, kept, exported; and slips."""

import json

import pytest

import setrnn
from page.page_site import (
    chips,
    drop,
    expect,
    exported,
    open_queue,
    settled,
    suggested,
    visit_page,
    wait_for,
)

TEXT = "Velmara held their nerve on Monday night to beat Palmeda 1-0 and lift the trophy."


@pytest.fixture
def rows(small_examples):
    return [{"id": each.id, "text": each.text} for each in small_examples["test"][:8]]


def test_a_queue_is_gone_through_by_keys_and_exported_as_decided(tab, rows):
    open_queue(tab, rows)
    decided = {}
    for number, row in enumerate(rows[:4]):
        wait_for(tab, row["id"])
        if number == 1:
            tab.keyboard.press("s")
            continue
        tab.keyboard.press("y" if number else "n")
        settled(tab)
        decided[row["id"]] = chips(tab)
        tab.keyboard.press("d")
    wait_for(tab, rows[4]["id"])
    expect(tab.locator("#queue-done")).to_have_text("3 done, 1 skipped")
    name, lines = exported(tab)
    assert name == "news-tagged.jsonl"
    assert [(line["id"], line["labels"]) for line in lines] == list(decided.items())
    tab.keyboard.press("k")
    wait_for(tab, rows[3]["id"])
    tab.locator("#set .label").first.click()  # a change opens the document again
    expect(tab.locator("#queue-done")).to_have_text("2 done, 1 skipped")
    tab.keyboard.press("u")
    expect(tab.locator("#queue-done")).to_have_text("3 done, 1 skipped")


def test_a_reload_keeps_the_place_and_what_is_done(tab, site, rows):
    open_queue(tab, rows)
    tab.keyboard.press("d")
    wait_for(tab, rows[1]["id"])
    tab.keyboard.press("s")
    wait_for(tab, rows[2]["id"])
    before = exported(tab)
    visit_page(tab, site)
    wait_for(tab, rows[2]["id"])
    expect(tab.locator("#queue-done")).to_have_text("1 done, 1 skipped")
    assert exported(tab) == before
    tab.keyboard.press("k")
    wait_for(tab, rows[1]["id"])
    expect(tab.locator("#document-status")).to_have_text("skipped")
    tab.click("#previous")
    wait_for(tab, rows[0]["id"])
    expect(tab.locator("#document-status")).to_have_text("done")
    expect(tab.locator("#previous")).to_be_disabled()


def test_a_file_that_cannot_be_read_is_refused_in_one_line(tab):
    for name, content, said in [
        ("bad.csv", '"a"b,c\n1,2\n', "bad.csv has no header that can be read: line 1"),
        ("bad.jsonl", '{"txt": 1}\n', "1 line skipped. Line 1: 'text' must be a string."),
        ("bad.jsonl", "not json\n", "Line 1: not a JSON object on one line."),
        ("bad.jsonl", '{"text": "a", "labels": "sport"}\n', "'labels' must be a list of strings"),
        ("bad.jsonl", 'a\n{"text": 1}\nb\n' + 9 * "c\n", "Lines 1, 3, 4, 5, 6 and 6 more: not"),
        ("empty.csv", b"\xef\xbb\xbf\n", "empty.csv is empty."),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\0\xff\xd8", "picture.csv is not a text."),
        ("empty.jsonl", "\n\n", "empty.jsonl is empty."),
        ("empty.txt", "", "empty.txt is empty."),
        ("picture.png", b"\x89PNG\r\n\x1a\n\xff\xd8", "picture.png is not a text in UTF-8."),
        ("films.xlsx", b"PK\x03\x04", "films.xlsx is a spreadsheet. Save its sheet as CSV"),
        ("program.txt", b"\x7fELF\0\0", "program.txt is not a text in UTF-8."),
    ]:
        drop(tab, name, content)
        expect(tab.locator("#trouble:visible")).to_contain_text(said)
        assert tab.is_hidden("#queue")
        assert tab.is_hidden("#reading")


def test_clearing_and_replacing_a_queue_are_asked_about(tab, rows):
    open_queue(tab, rows)
    tab.keyboard.press("d")
    wait_for(tab, rows[1]["id"])
    tab.click("#clear")
    expect(tab.locator("#question")).to_contain_text("decisions about 1 document")
    tab.keyboard.press("Escape")
    assert tab.is_visible("#queue")
    drop(tab, "other.jsonl", '{"text": "other"}\n')
    tab.click("#question >> text=Cancel")
    expect(tab.locator("#queue-name")).to_have_text("news.jsonl")
    drop(tab, "other.jsonl", '{"text": "other"}\n')
    tab.click("#question-yes")
    expect(tab.locator("#queue-name")).to_have_text("other.jsonl")
    tab.click("#clear")
    tab.click("#question-yes")
    expect(tab.locator("#queue")).to_be_hidden()
    tab.reload()
    tab.wait_for_selector("html[data-ready]")
    assert tab.is_hidden("#queue")
    assert tab.is_visible("#text")


@pytest.fixture
def accepted(site, rows):
    """The rows that the model accepts, with their sets."""
    predictions = site.tagger.tag([row["text"] for row in rows])
    found = {
        row["id"]: list(each.labels)
        for row, each in zip(rows, predictions, strict=True)
        if each.accepted
    }
    assert 1 < len(found) < len(rows)
    return found


def test_all_that_is_settled_is_accepted_at_once_and_undone_at_once(tab, site, rows, accepted):
    open_queue(tab, rows)
    expect(tab.locator("#queue-left")).to_have_text("8 left")
    n, n_left = len(accepted), 8 - len(accepted)
    tab.click("#accept-settled")
    expect(tab.locator("#queue-hint")).to_contain_text(f"{n} documents accepted without review")
    expect(tab.locator("#queue-hint")).to_contain_text("90%")
    expect(tab.locator("#queue-left")).to_have_text(f"{n_left} left")
    expect(tab.locator("#queue-done")).to_have_text(f"{n} done ({n} not reviewed)")
    assert tab.text_content("#document-title") not in accepted
    _, lines = exported(tab)
    assert {line["id"]: line["labels"] for line in lines} == accepted
    assert all(line["reviewed"] is False for line in lines)
    visit_page(tab, site)
    settled(tab)
    tab.click("#undo")
    expect(tab.locator("#queue-left")).to_have_text("8 left")
    expect(tab.locator("#queue-hint")).to_contain_text(f"{n} documents open again")
    expect(tab.locator("#export")).to_be_disabled()
    expect(tab.locator("#undo")).to_be_disabled()


def test_what_a_person_has_decided_is_left_alone(tab, rows, accepted):
    first, second, *_ = accepted
    begun = [{**row, "labels": ["mine"]} if row["id"] == second else row for row in rows]
    open_queue(tab, begun)
    while tab.text_content("#document-title") != first:
        tab.keyboard.press("j")
        settled(tab)
    tab.locator("#set .label").first.click()
    settled(tab)
    tab.click("#accept-settled")
    expect(tab.locator("#queue-hint")).to_contain_text(f"{len(accepted) - 2} document")
    assert tab.text_content("#document-title") == first
    tab.keyboard.press("d")
    expect(tab.locator("#queue-done")).to_contain_text(f"{len(accepted) - 1} done")
    ids = [line["id"] for line in exported(tab)[1]]
    assert first in ids
    assert second not in ids


def test_a_new_label_is_offered_again_and_becomes_a_label_of_the_next_model(tab, rows, tmp_path):
    open_queue(tab, rows)
    for number in range(3):
        wait_for(tab, rows[number]["id"])
        tab.keyboard.press("/")
        tab.keyboard.type("water polo" if number == 0 else "polo")
        option = tab.locator("#found li", has_text="water polo")
        if number:
            expect(option).to_contain_text(f"new, {number} document")
        option.click()
        settled(tab)
        tab.locator("#search").blur()
        tab.keyboard.press("d")
    expect(tab.locator("#export")).to_have_text("Export 3")
    with tab.expect_download() as waiting:
        tab.click("#export")
    expect(tab.locator("#queue-hint")).to_contain_text("New label: water polo (3)")
    waiting.value.save_as(tmp_path / "tagged.jsonl")
    lines = (tmp_path / "tagged.jsonl").read_text(encoding="utf-8").splitlines()
    assert all("water polo" in json.loads(line)["labels"] for line in lines)
    (tmp_path / "again.jsonl").write_text("\n".join(lines * 3), encoding="utf-8")
    tagger = setrnn.train(tmp_path / "again.jsonl", method="br")
    assert "water polo" in tagger.labels.names


def hold(tab, key):
    """Hold a key down until it repeats."""
    for _ in range(4):
        tab.keyboard.down(key)
        settled(tab)
    tab.keyboard.up(key)


def test_a_key_that_is_held_down_decides_once(tab, rows):
    open_queue(tab, rows)
    expect(tab.locator("#suggestion .accept")).to_be_focused()
    hold(tab, "y")
    assert len(chips(tab, "accepted")) == 1
    hold(tab, "d")
    expect(tab.locator("#queue-done")).to_have_text("1 done")
    wait_for(tab, rows[1]["id"])
    tab.focus("#done")
    hold(tab, "Enter")
    expect(tab.locator("#queue-done")).to_have_text("2 done")
    tab.keyboard.press("Shift+D")  # as Caps Lock does
    wait_for(tab, rows[3]["id"])


def test_undo_goes_back_to_the_document_that_was_done_too_early(tab, site, rows):
    open_queue(tab, rows)
    label = suggested(tab)
    tab.keyboard.press("y")
    settled(tab)
    shown = chips(tab)
    tab.keyboard.press("d")
    wait_for(tab, rows[1]["id"])
    tab.keyboard.press("s")
    wait_for(tab, rows[2]["id"])
    visit_page(tab, site)
    wait_for(tab, rows[2]["id"])
    tab.keyboard.press("u")
    wait_for(tab, rows[1]["id"])
    expect(tab.locator("#document-status")).to_be_hidden()
    tab.keyboard.press("u")
    wait_for(tab, rows[0]["id"])
    expect(tab.locator("#document-status")).to_be_hidden()
    expect(tab.locator("#queue-done")).to_have_text("0 done")
    assert chips(tab, "accepted") == [label]
    assert chips(tab) == shown
    tab.keyboard.press("u")
    assert chips(tab, "accepted") == []
    expect(tab.locator("#undo")).to_be_disabled()
