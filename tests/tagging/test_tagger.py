import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setrnn.data.groups import Group
from setrnn.errors import ConfigError, DataError
from setrnn.systems.candidates import SetCandidates
from setrnn.systems.limits import Limits
from setrnn.systems.predicting import BatchSearch
from setrnn.systems.rules import RULES, Rule
from setrnn.tagging import trained_model
from setrnn.tagging.tagger import load
from small_taggers import with_thresholds


def test_a_stream_is_read_as_it_is_needed(tagger, test_texts, monkeypatch):
    """A service or a long file: predictions start before the last document is read."""
    monkeypatch.setattr(trained_model, "BATCH", 4)
    n_read = 0

    def documents():
        nonlocal n_read
        for text in test_texts:
            n_read += 1
            yield text, ()

    stream = tagger.tag_stream(documents())
    next(stream)
    assert n_read <= 8


@pytest.mark.parametrize("top", [1, 2, 3, 12, 30])
def test_top_gives_that_many_sets_in_descending_order_of_probability(tagger, test_texts, top):
    both = zip(tagger.tag(test_texts), tagger.tag(test_texts, top=top), strict=True)
    for alone, prediction in both:
        assert alone.labels == prediction.labels
        assert alone.probability == pytest.approx(prediction.probability, rel=1e-4)
        assert len(prediction.alternatives) <= top - 1
        probabilities = [prediction.probability]
        probabilities += [each.probability for each in prediction.alternatives]
        assert probabilities == sorted(probabilities, reverse=True)
        assert all(0 <= p <= 1 for p in probabilities)
        assert sum(probabilities) <= 1 + 1e-6
        sets = [frozenset(prediction.labels)]
        sets += [frozenset(each.labels) for each in prediction.alternatives]
        assert len(set(sets)) == len(sets), "a set is listed twice"
        for labels in (prediction.labels, *(each.labels for each in prediction.alternatives)):
            assert len(set(labels)) == len(labels)
            assert set(labels) <= set(tagger.labels.names)


REFUSED = [
    (["a"], {"top": 0}, "top"),
    (["a"], {"top": -1}, "top"),
    ([], {"rule": "sets"}, "Did you mean 'set'"),
    ([], {"rule": "sequence"}, "emits labels one by one, and 'br' does not"),
    (["a"], {"rule": "micro-f1"}, "'micro-f1' needs thresholds.*setrnn calibrate"),
    (["a"], {"rule": "label-f1"}, "'label-f1' needs thresholds.*setrnn calibrate"),
    ("the cup final", {}, r"such as \[text\]"),
    *((["one", "two"], {"features": each}, "features") for each in ([], [()], [(), (), ()])),
    (["text"], {"features": ["sport"]}, r"features\[0\] must be a collection"),
    *((["fine", each], {}, "string") for each in (None, 3, b"bytes", ["words"], ("a", "pair"))),
]


@pytest.mark.parametrize(("texts", "how", "said"), REFUSED)
def test_what_cannot_be_tagged_is_refused_in_one_line(taggers, texts, how, said):
    uses = [taggers["br"].tag]
    if "rule" not in how and "top" not in how:
        uses.append(taggers["br"].predict_proba)
    for use in uses:
        with pytest.raises((ConfigError, DataError), match=said) as error:
            use(texts, **how)
        assert "\n" not in str(error.value)


def test_no_texts_give_no_predictions(tagger):
    assert tagger.tag([]) == []
    assert tagger.tag([], features=[]) == []
    assert tagger.predict_proba([]).shape == (0, len(tagger.labels))
    assert list(tagger.tag_stream([])) == []


@given(st.lists(st.text(max_size=30), max_size=4))
@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_is_tagged(taggers, texts):
    for tagger in (taggers["pcc"], taggers["set-rnn"]):
        predictions = tagger.tag(texts, top=2)
        assert len(predictions) == len(texts)
        assert np.isfinite(tagger.predict_proba(texts)).all()


@pytest.mark.parametrize("name", ["seq2seq-rnn", "sgm", "set-rnn"])
def test_a_set_is_at_least_as_probable_as_its_best_sequence(taggers, test_texts, name):
    by_set = taggers[name].tag(test_texts, rule="set", top=4)
    for best, prediction in zip(
        taggers[name].tag(test_texts, rule="sequence"), by_set, strict=True
    ):
        probs = {each.labels: each.probability for each in (prediction, *prediction.alternatives)}
        assert best.probability <= probs[best.labels] * (1 + 1e-4)
        assert prediction.probability >= probs[best.labels] * (1 - 1e-4)


def test_alternatives_leave_out_the_predicted_set_wherever_it_stands(tagger, monkeypatch):
    """A rule need not choose the most probable set."""
    candidates = SetCandidates(
        labels=np.array([[[0, 1], [2, -1], [-1, -1]]], dtype=np.int32),
        log_probs=np.log([[0.5, 0.3, 0.1]]),
    )
    second = Rule("sets", lambda choice: choice.candidates.labels[:, 1])
    monkeypatch.setitem(RULES, "second", second)
    search = BatchSearch(tagger.system, tagger.encoder.encode(["a text"]), {})
    search.candidates["sets"] = candidates
    names, options = tagger.labels.names, tagger.resolve("second")
    for top in (1, 2, 3, 4):
        (found,) = tagger.name_chosen(search, replace(options, top=top))
        assert found.labels == (names[2],)
        assert found.probability == pytest.approx(0.3)
        others = [each.labels for each in found.alternatives]
        assert others == [names[:2], ()][: top - 1]


@pytest.mark.parametrize("rule", [name for name in RULES if name != "sequence"])
def test_the_probability_is_that_of_the_predicted_set_whatever_the_rule(tagger, test_texts, rule):
    texts = test_texts[:12]
    found = with_thresholds(tagger).tag(texts, rule=rule, top=3)
    sets = tagger.labels.encode([each.labels for each in found])
    rows = sets.padded(min_width=1)
    system = tagger.system.for_rule(rule)
    log_probs = system.set_log_probs(tagger.encoder.encode(texts), rows[:, None])[:, 0]
    wanted, probs = np.exp(log_probs), np.array([each.probability for each in found])
    if tagger.method == "set-rnn-exact" and rule != "set":
        # Sets that are not among the best may lack orders that the search has pruned.
        assert (probs <= wanted * (1 + 1e-3) + 1e-12).all()
    else:
        np.testing.assert_allclose(probs, wanted, rtol=1e-3, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_all_that_is_predicted_is_within_the_limits(tagger, test_texts, rule):
    if rule == "sequence" and not tagger.system.emits_sequences:
        return
    first, second, third = tagger.labels.names[:3]
    for limits in (
        Limits(min_labels=2, max_labels=3),
        Limits(required=[third], forbidden=[first, second]),
        Limits(only_seen=True, min_labels=1),
        Limits(groups=[Group([first, second], 1, exactly=True), Group([third], 0)]),
    ):
        seen = {frozenset(row.tolist()) for row in tagger.seen_sets}
        found = with_thresholds(tagger).tag(test_texts[:15], rule, top=3, limits=limits)
        for each in (alike for one in found for alike in (one, *one.alternatives)):
            names = set(each.labels)
            assert len(names) >= limits.min_labels
            assert limits.max_labels is None or len(names) <= limits.max_labels
            assert set(limits.required) <= names
            assert not set(limits.forbidden) & names
            ids = frozenset(tagger.labels.index[name] for name in names)
            assert not limits.only_seen or ids in seen
            if limits.groups:
                assert len(names & {first, second}) == 1
                assert third not in names


def test_a_model_without_its_seen_sets_refuses_only_seen_and_works_otherwise(
    taggers, tmp_path, test_texts
):
    replace(taggers["br"], seen_sets=None).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    with pytest.raises(ConfigError, match="label sets seen in training"):
        loaded.tag(test_texts, limits=Limits(only_seen=True))
    assert all(each.labels for each in loaded.tag(test_texts[:5], limits=Limits(min_labels=1)))


def test_marginals_come_with_the_mass_they_do_not_rest_on(tagger, test_texts):
    found = tagger.marginals(test_texts)
    np.testing.assert_array_equal(found.probs, tagger.predict_proba(test_texts))
    assert found.missing_mass.shape == (len(test_texts),)
    assert ((found.missing_mass >= 0) & (found.missing_mass <= 1)).all()
    is_whole = tagger.method in ("br", "br-support", "sigmoid")
    assert (found.missing_mass.max() == 0) == is_whole


SLOW = {"torch._dynamo", "sympy", "sklearn", "scipy.optimize", "pandas"}
LOAD = "import sys; from setrnn import load; [load(each, 'cpu') for each in sys.argv[1:]]; "


def test_loading_imports_nothing_that_takes_longer_than_all_else(taggers, tmp_path):
    folders = [tmp_path / method for method in taggers]
    for method, folder in zip(taggers, folders, strict=True):
        taggers[method].save(folder)
    code = LOAD + "print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, *folders], capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    assert "torch" in modules
    assert SLOW & modules == set()


def test_a_model_lists_the_rules_it_can_predict_by(tagger, test_texts):
    assert not {"micro-f1", "label-f1"} & set(tagger.rules), "they need thresholds"
    assert ("sequence" in tagger.rules) == tagger.system.emits_sequences
    ready = with_thresholds(tagger)
    for rule in RULES:
        if rule in ready.rules:
            assert len(ready.tag(test_texts[:2], rule=rule)) == 2
        else:
            with pytest.raises(ConfigError):
                ready.tag(test_texts[:2], rule=rule)


def test_a_device_that_exists_nowhere_is_refused_for_every_model(taggers, tmp_path):
    taggers["br"].save(tmp_path / "model")
    with pytest.raises(ConfigError, match="no device 'metal'"):
        load(tmp_path / "model", "metal")
