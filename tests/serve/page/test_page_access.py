"""The page by keyboard only, for screen readers, on a phone, in the dark."""

import json

import pytest

from page.page_site import (
    another,
    chips,
    expect,
    open_queue,
    opened,
    settled,
    suggested,
    tag,
)

TEXT = "Velmara held their nerve on Monday night to beat Palmeda 1-0 and lift the trophy."
SERIOUS = ("serious", "critical")


def findings(tab, *parts, **options):
    """Return what axe finds in parts of the page, or in all of it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options["resultTypes"] = ["violations"]
    return [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in axe.run(tab, context=", ".join(parts) or None, options=options).response[
            "violations"
        ]
        if each["impact"] in SERIOUS
    ]


def findings_in_the_dark(tab, *parts):
    tab.emulate_media(color_scheme="dark")
    found = findings(tab, *parts, runOnly=["color-contrast"])
    tab.emulate_media(color_scheme="light")
    return found


def test_axe_finds_nothing_serious_in_light_and_dark(browser, site, test_texts):
    with opened(browser, site, bypass_csp=True) as tab:  # axe is put into the page
        assert findings(tab, "#text-form", "#welcome") == []
        tag(tab, TEXT)
        tab.wait_for_selector("#orders .track")
        tab.keyboard.press("y")
        tab.keyboard.press("n")
        settled(tab)
        tab.keyboard.press("?")
        tab.fill("#search", "s")
        tab.wait_for_selector("#found li")
        assert findings(tab) == []
        assert findings_in_the_dark(tab) == []
        tab.click("#new")
        tab.click("#example-file")
        tab.select_option("#table-separator", ";")
        tab.wait_for_selector("#table-doubt:not([hidden])")
        tab.click("#table-reading summary")
        assert findings(tab, "#table") == []
        assert findings_in_the_dark(tab, "#table") == []
        tab.keyboard.press("Escape")
        open_queue(tab, [{"text": text, "features": ["prices"]} for text in test_texts[:3]])
        tab.keyboard.press("d")
        expect(tab.locator("#queue-done")).to_have_text("1 done")
        settled(tab)
        assert findings(tab, "#queue", "#document") == []
        assert findings_in_the_dark(tab, "#queue", "#document") == []
        tab.click("#clear")
        assert findings(tab, "#question") == []
        tab.click("#question >> text=Cancel")
        with another(tab.context, site):
            tab.wait_for_selector("#keeping:not([hidden])")
        assert findings(tab, "#keeping") == []
        assert findings_in_the_dark(tab, "#keeping") == []


def test_a_document_is_tagged_by_keyboard_alone(tab, site, tmp_path):
    for _ in range(12):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.id") == "text":
            break
    text = "Velmara beat Palmeda, yndus"  # keys are letters while one types
    tab.keyboard.type(text)
    tab.keyboard.press("Control+Enter")
    settled(tab)
    assert tab.text_content("#reading") == text
    first = suggested(tab)
    tab.keyboard.press("Enter")  # the focus is on accepting the suggestion
    settled(tab)
    assert chips(tab, "accepted") == [first]
    second = suggested(tab)
    tab.keyboard.press("n")
    settled(tab)
    assert chips(tab, "rejected") == [second]
    label = site.tagger.labels.names[-1]
    tab.keyboard.press("/")
    tab.keyboard.type(label)
    tab.wait_for_selector("#found li")
    tab.keyboard.press("Enter")
    settled(tab)
    assert label in chips(tab, "accepted")
    tab.keyboard.press("Escape")
    tab.keyboard.press("d")
    expect(tab.locator("#document-status")).to_have_text("done")
    for _ in range(40):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.id") == "save":
            break
    with tab.expect_download() as waiting:
        tab.keyboard.press("Enter")
    waiting.value.save_as(tmp_path / "one.jsonl")
    saved = json.loads((tmp_path / "one.jsonl").read_text(encoding="utf-8"))
    found = site.tagger.complete(text, present=[first, label], absent=[second])
    assert set(saved["labels"]) == set(found.labels)


def test_results_are_announced(tab, site):
    tag(tab, TEXT)
    status = tab.locator("#status")
    assert status.get_attribute("aria-live") == "polite"
    expect(status).to_contain_text(", ".join(site.tagger.tag([TEXT])[0].labels))
    before = suggested(tab)
    tab.keyboard.press("n")
    settled(tab)
    found = site.tagger.complete(TEXT, absent=[before])
    expect(status).to_contain_text(", ".join(found.labels))
