"""What hands do on the page: keys held down or pressed too early, a phone tapped."""

import pytest

from page.page_site import (
    chips,
    expect,
    open_queue,
    settled,
    suggested,
    tag,
    visit_page,
    wait_for,
)


@pytest.fixture
def rows(test_texts):
    return [{"id": f"n{i}", "text": " ".join(test_texts[i : i + 3])} for i in range(8)]


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
    wait_for(tab, "n1")
    tab.focus("#done")
    hold(tab, "Enter")
    expect(tab.locator("#queue-done")).to_have_text("2 done")
    tab.keyboard.press("Shift+D")  # as Caps Lock does
    wait_for(tab, "n3")


def test_undo_goes_back_to_the_document_that_was_done_too_early(tab, site, rows):
    open_queue(tab, rows)
    label = suggested(tab)
    tab.keyboard.press("y")
    settled(tab)
    shown = chips(tab)
    tab.keyboard.press("d")
    wait_for(tab, "n1")
    tab.keyboard.press("s")
    wait_for(tab, "n2")
    visit_page(tab, site)
    wait_for(tab, "n2")
    tab.keyboard.press("u")
    wait_for(tab, "n1")
    expect(tab.locator("#document-status")).to_be_hidden()
    tab.keyboard.press("u")
    wait_for(tab, "n0")
    expect(tab.locator("#document-status")).to_be_hidden()
    expect(tab.locator("#queue-done")).to_have_text("0 done")
    assert chips(tab, "accepted") == [label]
    assert chips(tab) == shown
    tab.keyboard.press("u")
    assert chips(tab, "accepted") == []
    expect(tab.locator("#undo")).to_be_disabled()
    open_queue_anew(tab)
    expect(tab.locator("#undo")).to_be_disabled()


def open_queue_anew(tab):
    settled(tab)
    tab.locator("#set .label").first.click()
    expect(tab.locator("#undo")).to_be_enabled()
    tab.click("#clear")
    tab.click("#question-yes")
    tag(tab, "Velmara held their nerve")


def least_certain(probabilities):
    return min(probabilities, key=lambda label: abs(probabilities[label] - 0.5))


def test_what_is_asked_is_what_the_model_is_least_certain_of(tab, site, test_texts):
    names, marginals = site.tagger.labels.names, site.tagger.marginals(test_texts).probs.tolist()
    for text, row in zip(test_texts, marginals, strict=True):
        probabilities = dict(zip(names, row, strict=True))
        label = least_certain(probabilities)
        rest = dict(site.tagger.complete(text, absent=[label]).suggestions)
        is_asked = any(0.1 < probability < 0.9 for probability in rest.values())
        if is_asked and label != max(probabilities, key=probabilities.get):
            break
    tag(tab, text)
    assert suggested(tab) == label
    tab.keyboard.press("n")
    settled(tab)
    assert suggested(tab) == least_certain(rest)
