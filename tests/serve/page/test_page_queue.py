"""Many documents on the page: gone through, kept, exported."""

import json

import pytest

from page.page_site import chips, drop, expect, exported, open_queue, settled, visit_page, wait_for
from setrnn.data.read import BadRows, open_dataset


@pytest.fixture
def rows(small_examples):
    return [{"id": each.id, "text": each.text} for each in small_examples["test"][:6]]


def test_the_export_is_training_data(tab, rows, tmp_path, site):
    open_queue(tab, [{**rows[0], "features": ["prices"]}, {"text": rows[1]["text"]}])
    tab.keyboard.press("d")
    wait_for(tab, "Document 2")
    tab.keyboard.press("d")
    expect(tab.locator("#export")).to_have_text("Export 2")
    with tab.expect_download() as waiting:
        tab.click("#export")
    waiting.value.save_as(tmp_path / "out.jsonl")
    first, second = open_dataset(tmp_path / "out.jsonl").require("train").read(BadRows())
    assert first.labels == tuple(
        site.tagger.tag([rows[0]["text"]], features=[["prices"]])[0].labels
    )
    assert (first.id, first.features) == (rows[0]["id"], ("prices",))
    assert second.text == rows[1]["text"]


def test_a_reload_keeps_place_decisions_and_done_marks(tab, site, rows):
    open_queue(tab, rows)
    tab.keyboard.press("d")
    wait_for(tab, rows[1]["id"])
    tab.keyboard.press("s")
    wait_for(tab, rows[2]["id"])
    tab.keyboard.press("y")
    tab.keyboard.press("n")
    settled(tab)
    accepted, rejected = chips(tab, "accepted"), chips(tab, "rejected")
    before = exported(tab)
    visit_page(tab, site)
    wait_for(tab, rows[2]["id"])
    assert (chips(tab, "accepted"), chips(tab, "rejected")) == (accepted, rejected)
    expect(tab.locator("#queue-done")).to_have_text("1 done, 1 skipped")
    assert exported(tab) == before
    tab.keyboard.press("k")
    wait_for(tab, rows[1]["id"])
    expect(tab.locator("#document-status")).to_have_text("skipped")
    tab.click("#previous")
    wait_for(tab, rows[0]["id"])
    expect(tab.locator("#document-status")).to_have_text("done")
    expect(tab.locator("#previous")).to_be_disabled()


def test_accepted_documents_come_first_or_last(tab, site, rows):
    rows = rows[:4]
    open_queue(tab, rows)
    predictions = site.tagger.tag([row["text"] for row in rows])
    assert len({each.accepted for each in predictions}) == 2
    n_accepted = sum(each.accepted for each in predictions)
    for order, is_first in (("accepted-last", False), ("accepted-first", True)):
        wanted = sorted(
            range(len(rows)),
            key=lambda i: (predictions[i].accepted, predictions[i].probability),
            reverse=is_first,
        )
        at_hand = next(i for i in range(4) if rows[i]["id"] == tab.text_content("#document-title"))
        wanted = [at_hand, *(i for i in wanted if i != at_hand)]
        tab.select_option("#order", order)
        expect(tab.locator("#queue-hint")).to_contain_text(f"accepts {n_accepted} of 4")
        for place, number in enumerate(wanted):
            wait_for(tab, rows[number]["id"])
            confidence = "accepted" if predictions[number].accepted else "to be reviewed"
            expect(tab.locator("#confidence")).to_have_text(confidence)
            if place < len(rows) - 1:
                tab.keyboard.press("j")
    visit_page(tab, site)
    wait_for(tab, rows[wanted[-1]]["id"])
    tab.select_option("#order", "file")
    expect(tab.locator("#queue-place")).to_have_text(f"{wanted[-1] + 1} of 4")


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


def test_a_large_queue_is_kept(tab, site, test_texts, tmp_path):
    rows = [{"id": f"n{i}", "text": test_texts[i % 60] * 5} for i in range(3_000)]
    assert sum(len(row["text"]) for row in rows) > 3_000_000
    file = tmp_path / "large.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tab.set_input_files("#file", file)
    wait_for(tab, "n0")
    tab.keyboard.press("d")
    wait_for(tab, "n1")
    visit_page(tab, site)
    wait_for(tab, "n1")
    expect(tab.locator("#queue-place")).to_have_text("2 of 3,000")
    expect(tab.locator("#queue-done")).to_have_text("1 done")
