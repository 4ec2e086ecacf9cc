"""The words behind labels: lit up for any label and any set, whatever was decided."""

import pytest

from page.page_site import chips, expect, opened, settled, tag

TEXT = (
    "Velmara lift trophy in Kotamira. Velmara held their nerve on Monday night to beat Palmeda "
    "1-0 and lift the trophy in Kotamira."
)
FAINTEST = 0.04


def shares_of(explanation, *labels):
    """Where the words begin that labels attend to on average, with their shares of the most."""
    steps = [step for step in explanation.steps if step.label in labels]
    assert len(steps) == len(labels)
    starts = [word.start for word in explanation.words if word.place is not None]
    weights = [sum(each) for each in zip(*(step.weights for step in steps), strict=True)]
    return strong_of(zip(starts, weights, strict=True))


def strong_of(weights):
    weights = dict(weights)
    most = max(weights.values())
    shares = {start: weight / most for start, weight in weights.items()}
    return pytest.approx(
        {start: share for start, share in shares.items() if share >= FAINTEST}, abs=0.002
    )


def lit(tab):
    """Where the words begin that are lit up, with their strengths."""
    found = tab.evaluate(
        """() => [...document.querySelectorAll(".is-lit")].map((word) => {
            const before = document.createRange();
            before.setStart(document.getElementById("reading"), 0);
            before.setEndBefore(word);
            const share = Number(word.style.getPropertyValue("--heat-share"));
            return [before.toString().length, share];
        })"""
    )
    return dict(found)


def lights_up(tab, expected):
    for _ in range(60):
        if lit(tab) == expected:
            break
        tab.wait_for_timeout(50)
    assert lit(tab) == expected


def test_label_evidence_lights_the_words_that_speak_for_a_label(browser, site, ambiguous_text):
    text = f"🏆 {ambiguous_text}"
    explanation = site.tagger.explain(text)
    # The emoji is two units of a string in the browser.
    starts = [word.start + 1 for word in explanation.words if word.place is not None]
    with opened(browser, site) as tab:
        asked = []
        tab.on("request", lambda request: asked.append(request.url.endswith("/v1/explain")))
        tag(tab, text)
        tab.wait_for_selector("#orders .track")
        known = explanation.label_words  # those that were left out come last
        for each in (known[0], known[-1]):
            list_of = "#set" if each.is_in_set else "#marginals"
            tab.hover(f'{list_of} .label[data-label="{each.label}"]')
            lights_up(tab, strong_of(zip(starts, each.weights, strict=True)))
            (first,) = explanation.words_for(each, 1)
            said = tab.text_content("#attention")
            assert said.startswith(f"“{each.label}”: {first.text}")
            against = explanation.words_against(each, 1)
            assert "against it" not in said or f"against it: {against[0].text}" in said
        assert sum(asked) == 1
        other = site.tagger.tag([text], top=2)[0].alternatives[0].labels
        tab.hover("#alternatives .take >> nth=0")
        found = site.tagger.explain(text, labels=other).label_words
        rows = [each.weights for each in found if each.is_in_set]
        parts = [[max(weight, 0) / max(row) for weight in row] for row in rows]
        lights_up(tab, strong_of(zip(starts, map(sum, zip(*parts, strict=True)), strict=True)))
        assert "For the labels of this set: " in tab.text_content("#attention")


def test_without_label_evidence_the_words_are_those_that_labels_attend_to(browser, site):
    def without_label_words(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "label_words": []})

    with opened(browser, site) as tab:
        tab.route("**/v1/explain", without_label_words)
        tag(tab, TEXT)
        tab.locator("#set .reject").first.click()
        settled(tab)
        shown = chips(tab)
        explanation = site.tagger.explain(TEXT, labels=shown)
        orders = tab.locator(".order-list li:not(.total)")
        expect(orders).to_have_count(len(explanation.sequences))
        tab.hover(f'#set .label[data-label="{shown[0]}"]')
        lights_up(tab, shares_of(explanation, shown[0]))
        assert f"“{shown[0]}” attended to" in tab.text_content("#attention")
