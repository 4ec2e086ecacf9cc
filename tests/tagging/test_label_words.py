"""The words that speak for each label: of classical systems, and networks with evidence."""

import re
from dataclasses import replace
from html import unescape
from itertools import islice, product

import numpy as np
import pytest
import torch

from setrnn.config import TextSettings, load_config
from setrnn.data.batches import make_batch
from setrnn.data.cache import prepare
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
from setrnn.data.newsroom import examples
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError
from setrnn.methods import METHODS
from setrnn.report.html import render_explanation
from setrnn.systems.mixture import Weights, relabel
from setrnn.tagging.learn.mix import join
from small_taggers import SMALL_OVERRIDES, trained_tagger, with_thresholds
from tiny_transformers import save_transformer

TEXT = "The draft budget: raining clubs matched the police budget's film. Budget!"
NETWORKS = ("set-rnn", "sgm", "set-rnn-exact", "sigmoid")
CLASSICAL = ("br", "br-support", "pcc")
RULES = ("set", "f1", "hamming", "micro-f1", "label-f1")


@pytest.fixture(scope="module", params=NETWORKS)
def network(request, taggers):
    return taggers[request.param]


@pytest.fixture(scope="module", params=(*NETWORKS, *CLASSICAL))
def any_tagger(request, taggers):
    return taggers[request.param]


@pytest.fixture(scope="module", params=("set-rnn", "sigmoid"))
def transformer(request, tmp_path_factory):
    """A transformer that has hardly learned anything."""
    pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    folder = tmp_path_factory.mktemp("transformer")
    path = save_transformer(folder / "tiny")
    settings = ("encoder.name=transformer", f"encoder.path={path}", "training.epochs=1")
    text = TextSettings(tokenizer=str(path), max_tokens=60)
    streams = {"train": lambda: islice(examples("train"), 60)}
    prepare(streams, folder / "prepared", "newsroom", text, {"synthetic": True})
    config = load_config(overrides=(*SMALL_OVERRIDES, *settings))
    return trained_tagger(Prepared(folder / "prepared"), request.param, replace(config, text=text))


def evidence_of(tagger, text):
    """The evidence for each label as the network has it, without its constant part."""
    batch = make_batch(tagger.encoder.encode([text]), None, np.zeros(1, dtype=np.int64))
    network = tagger.system.network.eval()
    with torch.inference_mode():
        evidence = network.encode(batch).evidence[0, :-1] - network.evidence.value.bias
    return dict(zip(tagger.labels.names, evidence.tolist(), strict=True))


def without_evidence(tagger):
    """The same network without its label evidence."""
    model = replace(tagger.config.model, evidence=False)
    config = replace(tagger.config, model=model)
    arrays = tagger.system.arrays()
    left = {name: each for name, each in arrays.items() if not name.startswith("evidence.")}
    system = type(tagger.system).from_arrays(left, METHODS[tagger.method], config, "cpu")
    return replace(tagger, config=config, system=system)


def check_sums(tagger, text):
    expected = evidence_of(tagger, text)
    found = tagger.explain(text)
    assert found.label_words
    for each in found.label_words:
        assert len(each.weights) == len(found.read)
        assert sum(each.weights) + each.elsewhere == pytest.approx(
            expected[each.label], rel=1e-3, abs=1e-5
        )


def test_the_words_add_up_to_the_evidence_for_a_label(network, test_texts):
    for text in (TEXT, *test_texts[:4]):
        check_sums(network, text)
        assert all(each.elsewhere == 0 for each in network.explain(text).label_words)


@pytest.mark.parametrize("name", CLASSICAL)
def test_the_words_of_a_classical_system_add_up_to_what_its_features_add(taggers, test_texts, name):
    system, labels = taggers[name].system, taggers[name].labels
    for text in ("", TEXT, *test_texts[:4]):
        features = system.tfidf.transform(taggers[name].encoder.encode([text]))
        expected = system.linear.logits(features)[0] - system.linear.intercepts
        for each in taggers[name].explain(text).label_words:
            total = sum(each.weights) + each.elsewhere
            assert total == pytest.approx(expected[labels.index[each.label]], abs=1e-4)


def test_the_parts_of_words_add_up_to_the_evidence_for_a_label(transformer, test_texts):
    for text in (TEXT, test_texts[0], ""):
        check_sums(transformer, text)


def test_labels_are_those_of_the_set_then_the_most_probable_others(any_tagger, test_texts):
    for text in test_texts[:6]:
        found = any_tagger.explain(text)
        probs = dict(zip(any_tagger.labels.names, any_tagger.predict_proba([text])[0], strict=True))
        n_labels = len(found.predicted.labels)
        names = [each.label for each in found.label_words]
        assert tuple(names[:n_labels]) == found.predicted.labels
        others = sorted({*probs} - {*found.predicted.labels}, key=lambda name: -probs[name])
        likely = [name for name in others[:3] if probs[name] >= 0.001]
        assert [probs[name] for name in names[n_labels:]] == pytest.approx(
            [probs[name] for name in likely], abs=1e-5
        )
        for each in found.label_words:
            assert each.probability == pytest.approx(probs[each.label], abs=1e-5)
            assert each.is_in_set == (each.label in found.predicted.labels)


@pytest.mark.parametrize("n_labels", [0, 1, 3])
def test_a_given_set_of_independent_labels_has_its_product(taggers, n_labels):
    tagger = taggers["sigmoid"]
    tagger = replace(tagger, system=tagger.system.with_empty_shift(0.0))  # a product as it is
    names = tagger.labels.names[:n_labels]
    found = tagger.explain(TEXT, labels=names)
    probs = tagger.predict_proba([TEXT])[0].astype(float)
    is_in = np.isin(tagger.labels.names, names)
    (one,) = found.sets
    assert one.probability == pytest.approx(np.where(is_in, probs, 1 - probs).prod(), rel=1e-3)
    assert [each.label for each in found.label_words if each.is_in_set] == list(names)
    assert render_explanation(found)


def test_a_transformer_is_explained_by_words(transformer):
    found = transformer.explain(TEXT, ("money", "police station"))
    words = "The draft budget raining clubs matched the police budget's film Budget"
    assert " ".join(found.read) == f"{words} money police station"
    (expected,) = transformer.tag([TEXT], features=[["money", "police station"]])
    assert found.predicted.labels == expected.labels
    for step in found.steps:
        assert len(step.weights) == len(found.read)
        assert 0 < sum(step.weights) < 1  # the rest is on punctuation and special tokens
        assert "the" not in {word.text.lower() for word in found.words_for(step, 99)}
    assert bool(found.steps) == transformer.system.emits_sequences
    notes = " ".join(found.reading_notes())
    assert "2 stop words read" in notes
    assert ("attention of the steps" in notes) == bool(found.steps)
    page = unescape(render_explanation(found))
    assert all(word in page for word in found.read)
    long = transformer.explain("raining " * 60)
    assert len(long.with_fate("cut")) > 20
    assert any("text.max_tokens" in note for note in long.reading_notes())


def test_independent_labels_without_evidence_cannot_be_explained(taggers):
    tagger = without_evidence(taggers["sigmoid"])
    with pytest.raises(ConfigError, match=r"--set model\.evidence=true"):
        tagger.explain(TEXT)
    with pytest.raises(ConfigError, match="none of them"):
        join([tagger]).explain(TEXT)


def in_set(explanation):
    """The weights of the words for each label of the explained set."""
    return {
        each.label: (*each.weights, each.elsewhere)
        for each in explanation.label_words
        if each.is_in_set
    }


def check_weighted_sums(mixture, members, shares, text, **wanted):
    """Compare the words of a mixture with the weighted sums over its members."""
    found = mixture.explain(text, **wanted)
    labels = found.predicted.labels
    own = [in_set(member.explain(text, labels=labels)) for member in members]
    for label, weights in in_set(found).items():
        expected = sum(
            share * np.array(each[label]) for share, each in zip(shares, own, strict=True)
        )
        np.testing.assert_allclose(weights, expected, rtol=1e-3, atol=1e-5)
    return found


def test_a_mixture_is_explained_by_all_its_members(taggers, test_texts):
    members = [taggers["br"], taggers["set-rnn"], taggers["sigmoid"]]
    own = {"f1": np.array([0.3, 0.6, 0.1]), "hamming": np.array([0.5, 0.1, 0.4])}
    mixture = with_thresholds(join(members, Weights(np.array([0.35, 0.25, 0.4]), own)))
    for rule in [each for each in RULES if each in mixture.rules]:
        shares = own.get(rule, mixture.system.weights.current)
        for text in test_texts[:3]:
            found = check_weighted_sums(mixture, members, shares, text, rule=rule)
            ((expected,), marginals) = mixture.tag_with_marginals([(text, ())], rule)
            assert (found.method, found.rule) == ("mixture", rule)
            assert found.predicted.labels == expected.labels
            assert found.predicted.probability == pytest.approx(expected.probability, rel=1e-4)
            assert {*in_set(found)} == {*expected.labels}
            for each in found.label_words:
                place = mixture.labels.index[each.label]
                assert each.probability == pytest.approx(float(marginals.probs[0, place]))
            ids = mixture.labels.encode([each.labels for each in found.sets]).padded(min_width=1)
            tokens = mixture.encoder.encode([text])
            log_probs = mixture.system.for_rule(rule).set_log_probs(tokens, ids[None])[0]
            assert [each.probability for each in found.sets] == pytest.approx(np.exp(log_probs))


def test_the_steps_of_a_mixture_are_those_of_its_recurrent_member(taggers, test_texts):
    one, other = taggers["set-rnn"], taggers["sgm"]
    mixture = join([taggers["br"], one, other], Weights(np.array([0.6, 0.3, 0.1])))
    for text in test_texts[:3]:
        found = mixture.explain(text, rule="set")
        own = one.explain(text, labels=found.predicted.labels)
        assert found.member == "set-rnn"
        assert "steps are those of set-rnn (0.30)" in found.reading_notes()[0]
        assert found.steps == own.steps
        sequences = [(each.labels, each.probability) for each in found.sequences]
        by_member = one.explain(text, rule="set").sequences
        assert sequences == [(each.labels, each.probability) for each in by_member]
        sets = {each.name: {*each.labels} for each in found.sets}
        assert all(sets[each.set] == {*each.labels} for each in found.sequences)
    page = unescape(render_explanation(found))
    assert "by its member set-rnn" in page
    without = join([taggers["br"], taggers["sigmoid"]]).explain(TEXT)
    assert (without.member, without.steps, without.sequences) == ("", (), ())
    assert all(each.is_exact for each in without.sets)


def test_a_member_without_label_evidence_adds_no_words(taggers):
    silent = without_evidence(taggers["sigmoid"])
    mixture = join([silent, taggers["br"]], Weights(np.array([0.8, 0.2])))
    found = check_weighted_sums(mixture, [taggers["br"]], [0.2], TEXT, rule="set")
    assert "without words: sigmoid (0.80)" in found.reading_notes()[0]


def test_members_that_read_another_part_of_a_text_share_its_words(taggers):
    whole = taggers["br"]
    short = replace(whole, encoder=replace(whole.encoder, max_words=3))
    mixture = join([short, whole], Weights(np.array([0.4, 0.6])))
    found = mixture.explain(TEXT, ("money", "never heard of"))
    labels = found.predicted.labels
    ((of_short, features), (of_whole, others)) = (
        (each.read, each.features)
        for each in (
            member.explain(TEXT, ("money", "never heard of"), labels=labels)
            for member in (short, whole)
        )
    )
    assert found.read == of_whole
    assert found.features == features == others == ("money",)
    assert found.unknown_features == ("never heard of",)
    n_short = len(of_short) - 1
    by_short = in_set(short.explain(TEXT, ("money",), labels=labels))
    by_whole = in_set(whole.explain(TEXT, ("money",), labels=labels))
    for label, weights in in_set(found).items():
        expected = 0.6 * np.array(by_whole[label])
        expected[:n_short] += 0.4 * np.array(by_short[label][:n_short])
        expected[-2:] += 0.4 * np.array(by_short[label][-2:])
        np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)


def test_parts_of_words_add_to_the_words_of_a_mixture(transformer, tmp_path):
    streams = {"train": lambda: islice(examples("train"), 60)}
    prepare(streams, tmp_path, "newsroom", TextSettings(), {"synthetic": True})
    words = trained_tagger(Prepared(tmp_path), "br")
    found = join([words, transformer]).explain(TEXT)
    labels = found.predicted.labels
    by_words, by_parts = (each.explain(TEXT, labels=labels) for each in (words, transformer))
    assert found.read == by_parts.read
    film, film_of_words = found.read.index("film"), by_words.read.index("film")
    for label, weights in in_set(found).items():
        own, parts = in_set(by_words)[label], in_set(by_parts)[label]
        assert sum(weights) == pytest.approx((sum(own) + sum(parts)) / 2, abs=1e-4)
        assert weights[film] == pytest.approx((own[film_of_words] + parts[film]) / 2, abs=1e-4)


def test_a_mixture_explains_given_labels_in_the_order_of_each_member(taggers):
    own = taggers["br"]
    order = np.arange(len(own.labels))[::-1]
    names = tuple(own.labels.names[place] for place in order)
    first = replace(
        own,
        labels=LabelVocabulary(names, (1,) * len(names)),
        system=relabel(own.system, order.astype(np.int32)),
        seen_sets=None,
    )
    mixture = join([first, own], Weights(np.array([0.1, 0.9])))
    labels = [own.labels.names[3], own.labels.names[0]]
    found, expected = mixture.explain(TEXT, labels=labels), own.explain(TEXT, labels=labels)
    assert {*found.predicted.labels} == {*labels}
    assert found.predicted.probability == pytest.approx(expected.predicted.probability)
    by_label = in_set(expected)
    assert {*in_set(found)} == {*by_label}
    for label, weights in in_set(found).items():
        assert weights == pytest.approx(by_label[label])


@pytest.mark.parametrize("name", ["set-rnn", "set-rnn-exact", "mixture", "closed"])
def test_a_left_out_label_of_higher_probability_is_explained(taggers, test_texts, name):
    """The probability is that of the best closed set with the label, added or exchanged."""
    tree, n_explained = Hierarchy({}), 0
    tagger = taggers["set-rnn" if name == "closed" else name]
    if name == "closed":
        tagger = tagger.with_hierarchy({"football": "sport", "hockey": "sport", "storm": "weather"})
        tree = tagger.hierarchy
    for rule, text in product(("set", "f1"), test_texts[:30]):
        ((predicted,), marginals) = tagger.tag_with_marginals([(text, ())], rule)
        probs = dict(zip(tagger.labels.names, marginals.probs[0].tolist(), strict=True))
        own = {each: probs.pop(each) for each in predicted.labels}
        found = tagger.explain(text, rule=rule)
        if not own or max(probs.values()) <= min(own.values()):
            assert found.left_out == ""
            continue
        left, least = max(probs, key=probs.get), min(own, key=own.get)
        kept = [each for each in own if least not in tree.close([each])]
        sets = [tree.close([*own, left]), tree.close([*kept, left])]
        ids, tokens = tagger.labels.encode(sets).padded(), tagger.encoder.encode([text])
        wanted = np.exp(tagger.system.for_rule(rule).set_log_probs(tokens, ids[None])).max()
        n_explained += 1
        assert found.left_out.startswith(f"{left} ({probs[left]:.3g}) is left out: with it ")
        chances = re.search(r"the set has (.*), without it (.*?)\.(?: |$)", found.left_out)
        expected = [wanted, found.predicted.probability]
        assert [*map(float, chances.groups())] == pytest.approx(expected, rel=0.01)
        assert ("does not choose by" in found.left_out) == (expected[0] > expected[1])
        assert found.left_out in unescape(render_explanation(found))
        assert found.to_dict()["left_out"] == found.left_out
    assert n_explained
    assert tagger.explain(text, labels=own).left_out == "", "this set was not predicted"
