"""What the page says when the server refuses, is busy, or is gone."""

import json

import pytest

from page.page_site import expect, open_queue, reopened, settled, tag

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


def test_a_queue_is_read_ahead_past_what_the_server_refuses(tab, site, test_texts):
    predictions = sorted(
        zip(site.tagger.tag(test_texts[:4]), test_texts, strict=False),
        key=lambda pair: pair[0].probability,
    )
    rows = [{"id": str(i), "text": text} for i, (_, text) in enumerate(predictions)]
    open_queue(tab, rows)
    refused = 3  # would have come before all others
    busy, too_long = answering(503, "Busy.", retry_after="0.1"), answering(422, "Too long.")

    def answer(route):
        if busy.n_times < 2:
            busy(route)
        elif rows[refused]["text"] in route.request.post_data_json["texts"]:
            too_long(route)
        else:
            route.continue_()

    tab.route("**/v1/tag", answer)
    tab.select_option("#order", "accepted-first")
    n_accepted = sum(each.accepted for each, _ in predictions[:refused])
    expect(tab.locator("#queue-hint")).to_contain_text(f"accepts {n_accepted} of 4")
    assert too_long.n_times == 2  # with the others, and alone
    for _ in range(3):
        settled(tab)
        tab.keyboard.press("j")
    expect(tab.locator("#queue-place")).to_have_text("4 of 4")
    expect(tab.locator("#document-title")).to_have_text(str(refused))
    expect(tab.locator("#trouble:visible")).to_contain_text("Too long.")
