"""One contract for every method: the tests run over the whole dict."""

from dataclasses import replace

import numpy as np
import pytest

import setrnn
from setrnn.config import TextSettings
from setrnn.data.cache import prepare
from setrnn.errors import ConfigError
from setrnn.methods import METHODS
from setrnn.systems.registry import SYSTEMS, choose_rule, find_system
from setrnn.systems.rules import RULES
from small_taggers import SMALL, trained_tagger, with_thresholds
from tiny import TINY

CLASSICAL = [name for name, each in METHODS.items() if each.family == "classical"]
EVERY_METHOD = pytest.mark.parametrize("name", METHODS)
CORPUS = TINY["independent"]
TEXT = TextSettings(min_count=1, stop_words="none")
# The paper's Table 1, and what it calls the systems.
PAPER = {
    "br": "BR",
    "br-support": "BR-support",
    "pcc": "PCC",
    "seq2seq-rnn": "seq2seq-RNN",
    "vinyals-uniform": "Vinyals-RNN-uniform",
    "vinyals-sample": "Vinyals-RNN-sample",
    "vinyals-max": "Vinyals-RNN-max",
    "vinyals-max-direct": "Vinyals-RNN-max-direct",
    "sgm": "SGM",
    "set-rnn": "set-RNN",
}


@pytest.fixture(scope="module")
def tiny_prepared(tmp_path_factory):
    """Two hundred documents of four texts, whose distribution over sets is known."""
    examples = CORPUS.sample(200, seed=0)
    folder = tmp_path_factory.mktemp("tiny") / "tiny"
    return prepare({"train": lambda: iter(examples)}, folder, "tiny", TEXT, {})


def tiny_tagger(prepared, name, epochs=10):
    training = replace(SMALL.training, epochs=epochs)
    return trained_tagger(prepared, name, replace(SMALL, text=TEXT, training=training))


def list_rules(name):
    emits_sequences = find_system(METHODS[name]).emits_sequences
    return [name for name, rule in RULES.items() if rule.source == "sets" or emits_sequences]


@EVERY_METHOD
def test_a_method_trains_predicts_by_every_rule_it_has_saves_and_loads(
    name, tiny_prepared, tmp_path
):
    tagger = with_thresholds(tiny_tagger(tiny_prepared, name))
    tagger.save(tmp_path / "model")
    loaded = setrnn.load(tmp_path / "model", device="cpu")
    texts = list(CORPUS.truth)
    for rule in list_rules(name):
        found = tagger.tag(texts, rule=rule, top=4)
        assert loaded.tag(texts, rule=rule, top=4) == found
        # What follows of 16 possible sets by chance is 1/16.
        mean = np.mean(
            [
                CORPUS.truth[text].get(frozenset(each.labels), 0)
                for text, each in zip(texts, found, strict=True)
            ]
        )
        assert mean > (0.2 if rule in ("set", "sequence") else 0.05)
    np.testing.assert_array_equal(loaded.predict_proba(texts), tagger.predict_proba(texts))
    assert loaded.tag(texts) == tagger.tag(texts, rule=METHODS[name].rule)


def test_the_ten_systems_of_the_paper_come_first_in_its_order():
    assert list(METHODS)[:10] == list(PAPER)


@EVERY_METHOD
def test_only_set_rnn_and_ours_among_the_recurrent_predict_by_set(name):
    """As in the paper's Table 1: the others, also later ones, take that of the best sequence."""
    method = METHODS[name]
    assert method.rule in list_rules(name)
    if find_system(method).emits_sequences:
        is_by_sequence = method.is_later or (name in PAPER and name != "set-rnn")
        assert method.rule == ("sequence" if is_by_sequence else "set")
    else:
        with pytest.raises(ConfigError, match=f"'{name}' does not"):
            choose_rule(method, "sequence")


def test_later_methods_are_networks_of_others_and_come_last():
    later = [name for name, each in METHODS.items() if each.is_later]
    assert later == ["ocd-rnn", "seq2set-rnn", "greedy-order-rnn"]
    assert list(METHODS)[-len(later) :] == later
    assert all(METHODS[name].is_network and not METHODS[name].is_in_paper for name in later)


@pytest.mark.parametrize("n_sets", [1, 5, 40])
def test_candidates_are_distinct_sets_most_probable_first(tagger, small_prepared, n_sets):
    tokens = small_prepared.split("test").tokens
    candidates = tagger.system.candidates(tokens, n_sets)
    n_labels = len(small_prepared.labels)
    assert len(candidates) == len(tokens)
    assert candidates.labels.shape[:2] == candidates.log_probs.shape
    assert candidates.log_probs.shape[1] >= 1
    if tagger.method in ("br", "br-support"):  # to the others, more cost nothing
        assert candidates.log_probs.shape[1] <= n_sets
    assert np.isfinite(candidates.log_probs[:, 0]).all()
    assert (candidates.log_probs < 1e-9).all()
    assert (np.exp(candidates.log_probs).sum(1) < 1 + 1e-6).all()
    assert (candidates.log_probs[:, 1:] <= candidates.log_probs[:, :-1]).all()
    assert candidates.labels.min() >= -1
    assert candidates.labels.max() < n_labels
    for document in range(len(candidates)):
        sets = [
            tuple(candidates.set_at(document, rank))
            for rank, log_prob in enumerate(candidates.log_probs[document])
            if log_prob > -np.inf
        ]
        assert len(set(sets)) == len(sets)
        assert all(list(labels) == sorted(set(labels)) for labels in sets)


# The draws of later methods repeat in tests/objectives and tests/training/test_gradients.py.
@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].is_later])
def test_a_fixed_seed_repeats(name, tiny_prepared):
    one, other = (tiny_tagger(tiny_prepared, name, epochs=1).system.arrays() for _ in range(2))
    assert one.keys() == other.keys()
    for key, array in one.items():
        np.testing.assert_array_equal(array, other[key])


def test_every_system_belongs_to_a_method():
    assert set(SYSTEMS) == {each.name for each in METHODS.values() if not each.is_network}
