"""What the model is sure of, a whole queue at once, and labels that it does not know yet."""

import json

import pytest

import setrnn
from page.page_site import (
    expect,
    exported,
    open_queue,
    settled,
    visit_page,
    wait_for,
)


@pytest.fixture
def rows(small_examples):
    return [{"id": each.id, "text": each.text} for each in small_examples["test"][:8]]


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
