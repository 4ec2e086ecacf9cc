"""What the page keeps: on a reload, beside another tab, and where the browser refuses."""

import pytest

from page.page_site import (
    another,
    chips,
    drop,
    expect,
    exported,
    open_queue,
    opened,
    settled,
    suggested,
    visit_page,
    wait_for,
)

MISSING = """
    Object.defineProperty(window, "indexedDB", { value: undefined });
    for (const name of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(window, name, { get() { throw new DOMException("no"); } });
    }
"""


@pytest.fixture
def rows(test_texts):
    return [{"id": f"n{i}", "text": text} for i, text in enumerate(test_texts[:5])]


def fill_disk(tab):
    """Let transactions end as they do where there is no room."""
    tab.evaluate(
        """() => {
            const commit = IDBTransaction.prototype.commit;
            IDBTransaction.prototype.commit = function () {
                const error = new DOMException("no", "QuotaExceededError");
                Object.defineProperty(this, "error", { value: error });
                this.abort();
            };
            window.emptyDisk = () => { IDBTransaction.prototype.commit = commit; };
        }"""
    )


def is_asked_on_leaving(tab):
    """Return whether the page would have the browser ask."""
    return tab.evaluate("!window.dispatchEvent(new Event('beforeunload', { cancelable: true }))")


def test_a_second_tab_takes_over_and_the_first_one_stops(tab, site, rows):
    open_queue(tab, rows)
    tab.keyboard.press("d")
    wait_for(tab, "n1")
    with another(tab.context, site) as other:
        wait_for(other, "n1")
        expect(tab.locator("#keeping:visible")).to_contain_text("continued in another tab")
        for key in ("d", "s", "y"):
            tab.keyboard.press(key)
        drop(tab, "other.jsonl", '{"text": "other"}\n')
        expect(tab.locator("#queue-done")).to_have_text("1 done")
        assert tab.is_hidden("#question")
        other.keyboard.press("d")
        wait_for(other, "n2")
        assert other.is_hidden("#keeping")
        tab.click("#keeping >> text=Work here")
        wait_for(tab, "n2")
        expect(tab.locator("#queue-done")).to_have_text("2 done")
        expect(other.locator("#keeping:visible")).to_contain_text("continued in another tab")
    tab.keyboard.press("d")
    wait_for(tab, "n3")
    assert len(exported(tab)[1]) == 3


def test_without_a_database_it_says_so_exports_and_warns_before_it_is_lost(browser, site, rows):
    with opened(browser, site, script=MISSING, may_ask=True) as tab:
        expect(tab.locator("#keeping:visible")).to_contain_text("stores nothing for this page")
        open_queue(tab, rows)
        assert not is_asked_on_leaving(tab)  # the file is still there
        labels = chips(tab)
        tab.keyboard.press("d")
        wait_for(tab, "n1")
        with tab.expect_event("dialog") as question:
            tab.close(run_before_unload=True)
        question.value.dismiss()
        assert question.value.type == "beforeunload"
        assert exported(tab)[1] == [{**rows[0], "labels": labels}]
        assert not is_asked_on_leaving(tab)


def test_without_room_nothing_is_lost_while_the_page_is_open(tab, site, rows):
    open_queue(tab, rows)
    tab.keyboard.press("d")
    wait_for(tab, "n1")
    assert not is_asked_on_leaving(tab)
    fill_disk(tab)
    label = suggested(tab)
    tab.keyboard.press("y")
    expect(tab.locator("#keeping:visible")).to_contain_text("no space left")
    settled(tab)
    assert chips(tab, "accepted") == [label]
    assert is_asked_on_leaving(tab)
    tab.keyboard.press("d")
    wait_for(tab, "n2")
    tab.keyboard.press("k")
    wait_for(tab, "n1")
    assert label in chips(tab, "accepted")
    lines = exported(tab)[1]
    assert [line["id"] for line in lines] == ["n0", "n1"]
    tab.click("#keeping >> text=Try again")
    expect(tab.locator("#keeping:visible")).to_contain_text("no space left")
    tab.evaluate("emptyDisk()")
    tab.click("#keeping >> text=Try again")
    expect(tab.locator("#keeping")).to_be_hidden()
    tab.keyboard.press("s")
    wait_for(tab, "n2")
    visit_page(tab, site)
    wait_for(tab, "n2")
    expect(tab.locator("#queue-done")).to_have_text("2 done")
    assert exported(tab)[1] == lines


def test_a_reload_at_once_keeps_what_was_decided(tab, site, rows):
    open_queue(tab, rows)
    first = suggested(tab)
    tab.route("**/v1/complete", lambda route: None)  # no answer
    tab.keyboard.press("y")
    second = suggested(tab)
    tab.keyboard.press("n")
    tab.keyboard.press("/")
    tab.keyboard.type("spo")
    tab.keyboard.press("Escape")
    tab.locator("#set .label").last.press("Delete")
    decided = chips(tab, "accepted"), chips(tab, "rejected")
    tab.unroute_all()
    tab.reload()
    settled(tab)
    assert (chips(tab, "accepted"), chips(tab, "rejected")) == decided
    assert decided[0] == [first]
    assert second in decided[1]
