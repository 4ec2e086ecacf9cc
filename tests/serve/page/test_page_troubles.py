"""What the page says when the server refuses, is busy, or is gone."""

import json

import pytest

from page.page_site import expect, reopened, tag

TEXT = "Velmara held their nerve on Monday night to beat Palmeda 1-0."


@pytest.fixture
def tab(kept_tab, site):
    with reopened(kept_tab, site, may_fail=True) as tab:
        yield tab


def answering(status, detail, **headers):
    """Make a handler that answers with a problem, and counts."""

    def handle(route):
        handle.n_times += 1
        route.fulfill(
            status=status,
            content_type="application/problem+json",
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            body=json.dumps({"type": "x", "title": "T", "status": status, "detail": detail}),
        )

    handle.n_times = 0
    return handle


def submit(tab):
    tab.fill("#text", TEXT)
    tab.press("#text", "Control+Enter")


def test_a_refusal_is_said_in_the_servers_words(tab):
    for status, detail, said in [
        (413, "A request may have 4,194,304 bytes.", "too large for the server. A request may"),
        (422, "The model has no label 'x'. Did you mean 'y'?", "Did you mean 'y'?"),
        (422, "<img src=x onerror=alert(1)>", "<img src=x"),
        (500, "Something failed.", "Something failed."),
    ]:
        tab.route("**/v1/tag", answering(status, detail))
        submit(tab)
        expect(tab.locator("#trouble:visible")).to_contain_text(said)
        assert tab.is_hidden("#results")
        assert tab.locator("#trouble img").count() == 0
        tab.click("#edit")
        expect(tab.locator("#trouble")).to_be_hidden()


def test_an_explanation_that_fails_leaves_the_tags(tab):
    tab.route("**/v1/explain", answering(422, "It cannot be explained."))
    tag(tab, TEXT)
    tab.hover("#set .label >> nth=0")
    expect(tab.locator("#attention")).to_contain_text("It cannot be explained.")
    assert tab.is_hidden("#trouble")
    assert tab.is_hidden("#orders-section")
