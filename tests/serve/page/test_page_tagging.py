"""One document on the page: tagged, decided about, looked into."""

import pytest

from page.page_site import (
    chips,
    drop,
    expect,
    open_queue,
    percent,
    settled,
    tag,
    wait_for,
)

TEXT = (
    "Velmara lift trophy in Kotamira. Velmara held their nerve on Monday night to beat Palmeda "
    "1-0 and lift the trophy in Kotamira."
)
NASTY = {
    "markup": '<script>alert(1)</script> <b onclick="alert(1)">b</b> <img src=x onerror=alert(1)>',
    "right to left": "فريق فاز بالكأس يوم الاثنين بعد مباراة طويلة",
    "emoji": "Velmara 👩‍👩‍👧‍👦🏆 beat Palmeda 🇪🇺 1-0 \U0001f600 on Monday night",
    "half an emoji": "Velmara \ud83d beat Palmeda on Monday night",
    "chinese": "周一晚上,维尔马拉队在决赛中以一比零获胜,捧起了奖杯。",
    "controls": "Velmara\u0000 beat\u202e Palmeda\t on\u2028Monday",
    "entities": "&lt;b&gt; &amp; &#x27; ]]> --> ${1+1} {{1+1}}",
}


def test_a_text_gets_the_models_set_with_probability_alternatives_and_marginals(
    tab, site, ambiguous_text
):
    text = ambiguous_text
    tag(tab, text)
    predicted = site.tagger.tag([text], top=6)[0]
    assert chips(tab) == list(predicted.labels)
    assert tab.text_content("#probability") == percent(predicted.probability)
    sets = [
        each.locator("bdi").all_text_contents() for each in tab.locator("#alternatives li").all()
    ]
    assert sets == [
        list(each.labels) for each in predicted.alternatives if each.probability >= 0.001
    ]
    marginals = dict(
        zip(site.tagger.labels.names, site.tagger.marginals([text]).probs[0].tolist(), strict=True)
    )
    rows = tab.locator("#marginals li").all()
    assert len(rows) > 3
    for row in rows:
        label = row.locator("bdi").text_content()
        assert row.locator(".number").text_content() == percent(marginals[label])


@pytest.mark.parametrize("is_sure", [True, False])
def test_confidence_is_the_models_acceptance(tab, site, test_texts, is_sure):
    text = next(
        text
        for text, each in zip(test_texts, site.tagger.tag(test_texts), strict=True)
        if each.accepted is is_sure
    )
    tag(tab, text)
    expect(tab.locator("#confidence")).to_have_text("accepted" if is_sure else "to be reviewed")
    expect(tab.locator("#set-hint")).to_contain_text("90%")


def test_a_label_turns_from_accepted_to_rejected_to_neither(tab, site):
    tag(tab, TEXT)
    label = chips(tab)[0]
    name = tab.locator(f'#set .label[data-label="{label}"]')
    for state in ("accepted", "rejected"):
        name.click()
        assert chips(tab, state) == [label]
    settled(tab)
    found = site.tagger.complete(TEXT, absent=[label], top=6)
    expect(tab.locator("#probability")).to_have_text(percent(found.probability))
    assert label not in found.labels
    name.click()
    settled(tab)
    assert chips(tab) == list(site.tagger.tag([TEXT])[0].labels)


def test_another_rule_or_model_predicts_again(tab, site):
    tag(tab, TEXT)
    for rule in ("sequence", "hamming"):
        tab.select_option("#rule", rule)
        expect(tab.locator("#probability")).to_have_text(
            percent(site.tagger.tag([TEXT], rule)[0].probability)
        )
    with tab.expect_response("**/v1/tag"):
        tab.select_option("#model", "classical")
    settled(tab)
    expect(tab.locator("#confidence")).to_have_text("no acceptance threshold")
    assert chips(tab) == list(site.classical.tag([TEXT], "hamming")[0].labels)
    assert not tab.is_visible("#orders-section")


def test_a_nasty_text_is_shown_as_it_is(tab):
    directions = {}
    open_queue(tab, [{"id": name, "text": text} for name, text in NASTY.items()])
    for name, text in NASTY.items():
        wait_for(tab, name)
        assert tab.text_content("#reading") == text
        assert tab.locator("#reading script, #reading b, #reading img").count() == 0
        assert tab.locator("#trouble").is_hidden()
        direction = "(element) => getComputedStyle(element).direction"
        directions[name] = tab.eval_on_selector("#reading", direction)
        tab.keyboard.press("j")
    assert [name for name in directions if directions[name] == "rtl"] == ["right to left"]


def test_pasting_and_dropping_tag_at_once(tab, site):
    labels = list(site.tagger.tag([TEXT])[0].labels)
    drop(tab, "one.txt", TEXT)
    settled(tab)
    assert chips(tab) == labels
    tab.click("#new")
    expect(tab.locator("#text")).to_have_value("")
    tab.evaluate(
        """(text) => {
            const data = new DataTransfer();
            data.setData("text/plain", text);
            const field = document.getElementById("text");
            field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data }));
            field.value = text;
        }""",
        TEXT,
    )
    settled(tab)
    assert chips(tab) == labels


def test_an_answer_that_comes_late_is_not_waited_for(tab, site):
    tag(tab, TEXT)
    first, second = chips(tab)[:2]
    held = []
    tab.route("**/v1/complete", lambda route: route.continue_() if held else held.append(route))
    with tab.expect_request("**/v1/complete"):
        tab.click(f'#set .label[data-label="{first}"]')
    with tab.expect_event("requestfailed") as ended:
        tab.click(f'#set .label[data-label="{second}"]')
    assert ended.value.post_data_json["present"] == [first]
    both = site.tagger.complete(TEXT, present=[first, second], top=6)
    expect(tab.locator("#probability")).to_have_text(percent(both.probability))


def test_after_a_label_is_added_keys_belong_to_the_document_again(tab, site):
    tag(tab, TEXT)
    label = site.tagger.labels.names[-1]
    tab.keyboard.press("/")
    tab.keyboard.press("/")
    assert tab.input_value("#search") == ""
    tab.keyboard.type(label)
    tab.wait_for_selector("#found li")
    tab.keyboard.press("Enter")
    settled(tab)
    assert tab.evaluate("document.activeElement.id") == "reading"
    tab.keyboard.press("d")
    expect(tab.locator("#document-status")).to_have_text("done")
    tab.keyboard.press("/")
    tab.keyboard.type("a/")
    assert tab.input_value("#search") == "a/", "it may be within a label"


def test_a_set_far_less_probable_than_another_says_why_it_is_chosen(tab, site, test_texts):
    found = site.tagger.tag(test_texts, "hamming", top=6)
    most = [max([other.probability for other in each.alternatives], default=0) for each in found]
    shares = [each.probability / max(one, 1e-9) for each, one in zip(found, most, strict=True)]
    tab.select_option("#rule", "hamming")
    for row in (shares.index(min(shares)), shares.index(max(shares))):
        drop(tab, "one.txt", test_texts[row])
        expect(tab.locator("#reading")).to_have_text(test_texts[row])
        settled(tab)
        hint = f"{percent(found[row].probability)} is for exactly these labels. Another set has "
        said = f"{hint}{percent(most[row])}" in tab.locator("#set-hint").text_content()
        assert said == (shares[row] <= 0.5)
    assert min(shares) <= 0.5 < max(shares)
