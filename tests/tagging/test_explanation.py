import json
import re
from dataclasses import replace
from html import unescape
from itertools import permutations
from math import factorial

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setrnn.data.batches import make_batch
from setrnn.errors import ConfigError, DataError
from setrnn.report.html import render_explanation
from setrnn.systems.limits import Limits

TEXT = "Velmara to borrow 3,200.5 million more\nThe draft budget of Qqxzville, in 2024, shows it."
RECURRENT = ("seq2seq-rnn", "sgm", "set-rnn")


@pytest.fixture(scope="module", params=RECURRENT)
def recurrent(request, taggers):
    return taggers[request.param]


@pytest.fixture(scope="module")
def wide(taggers):
    """A tagger whose search is as wide as the space of its sets allows."""
    tagger = taggers["set-rnn"]
    config = replace(tagger.config, search=replace(tagger.config.search, beam_width=24))
    return replace(tagger, config=config, system=replace(tagger.system, config=config))


def test_the_prediction_is_that_of_tag(recurrent, test_texts, test_features):
    for rule in (None, "set", "sequence"):
        for text, features in zip(test_texts[:8], test_features, strict=False):
            (expected,) = recurrent.tag([text], rule, top=4, features=[features])
            found = recurrent.explain(text, features, rule=rule)
            assert found.predicted.labels == expected.labels
            assert found.rule == (rule or recurrent.rule_or_own(None))
            if found.rule == "set":
                sets = [(each.labels, each.probability) for each in found.sets]
                wanted = [(expected.labels, expected.probability)]
                wanted += [(each.labels, each.probability) for each in expected.alternatives]
                assert [labels for labels, _ in sets] == [labels for labels, _ in wanted]
                np.testing.assert_allclose([p for _, p in sets], [p for _, p in wanted], rtol=1e-4)
            else:
                assert found.sequences[0].probability == pytest.approx(
                    expected.probability, rel=1e-4
                )


def test_the_steps_multiply_to_the_probability_of_the_order(recurrent, test_texts):
    for text in test_texts[:8]:
        found = recurrent.explain(text)
        *order, stop = (step.label for step in found.steps)
        assert stop is None
        assert set(order) == set(found.predicted.labels)
        same = [each.probability for each in found.sequences if each.labels == tuple(order)]
        if same:  # the best order is found by the search over all labels, too
            assert found.order_probability == pytest.approx(same[0], rel=1e-4)
        assert found.order_probability <= found.predicted.probability * (1 + 1e-4)


def test_a_set_marked_exact_has_the_sum_over_all_its_orders(wide, test_texts):
    decoder, n_exact = wide.system.network.decoder, 0
    for text in test_texts[:6]:
        batch = make_batch(wide.encoder.encode([text]), None, np.zeros(1, dtype=np.int64))
        with torch.inference_mode():
            encoding = wide.system.network.encode(batch)
            for each in wide.explain(text).sets[:6]:
                assert each.is_exact == (factorial(len(each.labels)) <= 24)
                ids = [wide.labels.index[name] for name in each.labels]
                if len(ids) > 5:
                    continue
                orders = torch.tensor([list(permutations(ids))], dtype=torch.long)
                whole = float(decoder.score(encoding, orders).exp().sum())
                assert each.probability <= whole * (1 + 1e-4)
                if each.is_exact:
                    n_exact += 1
                    assert each.probability == pytest.approx(whole, rel=1e-4)
    assert n_exact


def test_a_given_set_has_the_probabilities_of_all_its_orders(wide, test_texts):
    decoder, names = wide.system.network.decoder, wide.labels.names
    for text, size in zip(test_texts, (0, 1, 2, 3, 4), strict=False):
        given = names[2 * size : 3 * size]  # seldom those that would be predicted
        found = wide.explain(text, top=99, labels=given)
        ids = [wide.labels.index[name] for name in given]
        orders = list(permutations(ids))
        batch = make_batch(wide.encoder.encode([text]), None, np.zeros(1, dtype=np.int64))
        with torch.inference_mode():
            scored = decoder.score(
                wide.system.network.encode(batch), torch.tensor([orders], dtype=torch.long)
            )[0]
        expected = {
            tuple(names[label] for label in order): float(prob)
            for order, prob in zip(orders, scored.double().exp(), strict=True)
        }
        assert {each.labels: each.probability for each in found.sequences} == pytest.approx(
            expected, rel=1e-4
        )
        (one,) = found.sets
        assert one.is_exact
        assert one.labels == given
        assert one.probability == pytest.approx(sum(expected.values()), rel=1e-4)
        best = max(expected, key=expected.__getitem__)
        assert [step.label for step in found.steps] == [*best, None]
        assert found.order_probability == pytest.approx(expected[best], rel=1e-4)


def test_the_attention_of_a_step_is_shared_out_among_what_was_read(recurrent):
    found = recurrent.explain(TEXT, ("money", "never heard of"))
    assert found.features == ("money",)
    assert found.unknown_features == ("never heard of",)
    assert found.read[-1] == "money"
    for step in found.steps:
        assert len(step.weights) == len(found.read)
        assert sum(step.weights) == pytest.approx(1, abs=1e-5)
        attended = found.words_for(step, 1000)
        assert sum(word.weight for word in attended) == pytest.approx(1, abs=1e-5)
        weights = [word.weight for word in attended]
        assert weights == sorted(weights, reverse=True)
        assert found.words_for(step, 2) == attended[:2]


def test_every_word_stands_where_it_is_written_and_its_fate_is_told(taggers):
    found = taggers["set-rnn"].explain(TEXT)
    fates = {word.text: word.fate for word in found.words}
    assert fates["budget"] == "known"
    assert fates["Qqxzville"] == "unknown"
    assert fates["3,200.5"] == fates["2024"] == "number"
    assert fates["The"] == fates["of"] == fates["it"] == "stop word"
    for word in found.words:
        assert TEXT[word.start : word.stop] == word.text
    assert [word.place for word in found.words if word.place is not None] == list(
        range(len(found.read))
    )
    notes = " ".join(found.reading_notes())
    assert "unknown to the model" in notes
    assert "Qqxzville" in notes
    assert "3,200.5, 2024" in notes


@given(st.text(max_size=60))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_words_read_are_those_the_encoder_gives(taggers, text):
    tagger = taggers["set-rnn"]
    found = tagger.explain(text, top=1)
    (expected,) = tagger.encoder.encode([text])
    assert len(found.read) == len(expected)
    end = 0
    for word in found.words:
        assert end <= word.start < word.stop <= len(text)
        end = word.stop
    for word, token in zip((w for w in found.words if w.place is not None), expected, strict=True):
        known = tagger.encoder.tokens[token]
        fate = {"[UNK]": "unknown", "NUM": "number"}.get(known, "known")
        assert word.fate == fate


def test_words_beyond_the_limit_are_said_to_be_cut(taggers):
    tagger = taggers["set-rnn"]
    short = replace(tagger, encoder=replace(tagger.encoder, max_words=3))
    found = short.explain("The budget, the draft budget and the deficit of Velmara <here>")
    read = [word.text for word in found.words if word.place is not None]
    assert read == ["budget", "draft", "budget"]
    cut = [word.text for word in found.with_fate("cut")]
    assert cut == ["and", "the", "deficit", "of", "Velmara", "here"]
    assert any("first 3 that" in note for note in found.reading_notes())
    page = render_explanation(found)
    assert '<span class="cut" title="not read">and the deficit of Velmara &lt;here</span>' in page


@pytest.mark.parametrize("text", ["", "   ", "...", "the of and"])
def test_a_text_without_words_is_explained(recurrent, text):
    found = recurrent.explain(text)
    assert found.read == ()
    assert all(step.weights == () for step in found.steps)
    assert "nothing to read" in found.reading_notes()[0]
    assert found.predicted.labels == recurrent.tag([text])[0].labels
    assert "There are no words." in render_explanation(found)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"text": [TEXT]}, DataError, "one string, got list"),
        ({"text": TEXT, "features": "money"}, DataError, "got one string"),
        ({"text": TEXT, "top": 0}, ConfigError, "top must be"),
        ({"text": TEXT, "rule": "sett"}, ConfigError, "Did you mean 'set'"),
        ({"text": TEXT, "labels": ["footbal"]}, DataError, "Did you mean 'football'"),
        ({"text": TEXT, "labels": "football"}, DataError, "a list of strings"),
        ({"text": TEXT, "labels": [["football"]]}, DataError, "a list of strings"),
        ({"text": TEXT, "labels": [], "rule": "set"}, ConfigError, "not chosen by a rule"),
        ({"text": TEXT, "labels": [], "limits": Limits(max_labels=1)}, ConfigError, "or limits"),
    ],
)
def test_wrong_arguments_are_refused(taggers, arguments, error, said):
    with pytest.raises(error, match=said):
        taggers["set-rnn"].explain(**arguments)


NASTY = '</script><script>alert("x")</script> <b onclick=\'y\'>&amp; budget" {{draft}} \ud83d'


def test_the_page_shows_a_nasty_text_as_it_is(taggers):
    tagger = taggers["set-rnn"]
    label = NASTY.replace("\ud83d", "")
    names = (*tagger.labels.names[:-1], label)
    nasty = replace(tagger, labels=replace(tagger.labels, names=names))
    found = nasty.explain(NASTY, (NASTY,), labels=[label])
    page = render_explanation(found)
    assert page.encode()
    assert NASTY.replace("\ud83d", "?") in unescape(page)
    assert page.count("<script") == page.count("</script") == 2, "no script but the page's own"
    assert "<b " not in page
    weights = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert json.loads(weights[1]) == [
        pytest.approx(list(each.weights), abs=1e-5) for each in (*found.label_words, *found.steps)
    ]


def test_the_page_needs_nothing_from_elsewhere(taggers):
    page = render_explanation(taggers["set-rnn"].explain(TEXT, ("money",)))
    assert not re.search(r"https?:|//\w|@import|url\(", page.replace("// Lights", ""))
    assert not re.search(r"<(?:link|img|iframe|object|base)\b|\s(?:src|href|srcset|action)=", page)
    assert "default-src 'none'" in page
