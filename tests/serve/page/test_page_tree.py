"""The tree of the labels on the page: by keyboard, by pointer, and what it means for decisions."""

from collections import namedtuple

import pytest

from page.page_site import chips, expect, opened, serving, settled, tag

TEXT = "Velmara held their nerve on Monday night to beat Palmeda 1-0 and lift the trophy."
PHONE = {"width": 360, "height": 740}
Site = namedtuple("Site", "address")


@pytest.fixture(scope="module")
def tree_site(taggers):
    from setrnn.serve.registry import Registry, ServedModel

    models = (
        ServedModel("tree", "v1", taggers["br"].with_hierarchy("newsroom")),
        ServedModel("plain", "v2", taggers["br"]),
    )
    with serving(Registry.of(*models)) as address:
        yield Site(address)


@pytest.fixture(scope="module")
def tree_tab(browser, tree_site):
    """A document on a phone; one test follows the other."""
    options = {"viewport": PHONE, "reduced_motion": "reduce", "bypass_csp": True}
    with opened(browser, tree_site, **options) as tab:
        tag(tab, TEXT)
        tab.click("#tree-details summary")
        yield tab


def focused(tab):
    return tab.evaluate("document.activeElement.dataset.label")


def press(tab, *keys):
    for key in keys:
        tab.keyboard.press(key)


def show(tab, label):
    """Open a label by its triangle."""
    item = tab.locator(f"#tree > [data-label={label}]")
    if item.get_attribute("aria-expanded") == "false":
        item.locator("> .row .twist").click()
    expect(item).to_have_attribute("aria-expanded", "true")


def test_the_tree_is_opened_and_walked_by_keys(tree_tab):
    tab = tree_tab
    tab.focus("#tree [tabindex='0']")
    top = focused(tab)
    press(tab, "ArrowRight")
    expect(tab.locator(f"#tree > [data-label='{top}']")).to_have_attribute("aria-expanded", "true")
    press(tab, "ArrowDown")
    child = tab.locator(":focus")
    expect(child).to_have_attribute("aria-level", "2")
    press(tab, "ArrowLeft")
    assert focused(tab) == top
    press(tab, "ArrowLeft", "ArrowDown")
    expect(tab.locator(":focus")).to_have_attribute("aria-level", "1")
    press(tab, "End")
    last = focused(tab)
    press(tab, "ArrowDown")
    assert focused(tab) == last
    press(tab, "Home")
    assert focused(tab) == top
    assert tab.locator("#tree [tabindex='0']").count() == 1


def test_decisions_in_the_tree_stay_closed_and_undo_gives_them_back(tree_tab):
    tab = tree_tab
    show(tab, "economy")
    markets = tab.locator("#tree [data-label=markets]")
    markets.locator("> .row .name").click()
    settled(tab)
    expect(markets).to_have_class("is-accepted")
    assert {"economy", "markets"} <= set(chips(tab))
    tab.focus("#tree [data-label=economy]")
    press(tab, "Delete")
    settled(tab)
    expect(tab.locator("#tree [data-label=economy]")).to_have_class("is-rejected")
    expect(markets).to_have_class("is-open")
    assert tab.locator("#trouble").is_hidden()
    press(tab, "u")
    settled(tab)
    expect(markets).to_have_class("is-accepted")
