import numpy as np
import pytest

from setrnn.systems.candidates import pack_labels
from setrnn.systems.limits import no_limits
from setrnn.systems.predicting import NO_RULE, BatchSearch, Question, group_sets
from setrnn.systems.rules import MANY_SETS, RULES
from setrnn.systems.rules.marginal_rules import Thresholds


@pytest.fixture
def tokens(small_prepared):
    return small_prepared.split("test").tokens.rows(0, 20)


def counted(system, monkeypatch):
    """Record the sources of each search of a network."""
    searches, search = [], type(system).gather_by_source

    def gather(self, tokens, n_sets, sources, work):
        searches.append(list(sources))
        return search(self, tokens, n_sets, sources, work)

    monkeypatch.setattr(type(system), "gather_by_source", gather)
    return searches


def test_all_rules_of_a_source_share_one_search(taggers, tokens, monkeypatch):
    system = taggers["seq2seq-rnn"].system
    searches = counted(system, monkeypatch)
    search = BatchSearch(system, tokens, {"sets": MANY_SETS, "sequences": 1})
    limits = no_limits(len(taggers["seq2seq-rnn"].labels))
    for name in ("set", "f1", "hamming", "sequence"):
        search.choose(name, limits)
    search.many_sets()
    assert searches == [["sets", "sequences"]]


def test_marginals_are_searched_for_if_only_sequences_were(taggers, tokens, monkeypatch):
    system = taggers["seq2seq-rnn"].system
    expected = system.candidates(tokens, MANY_SETS)
    searches = counted(system, monkeypatch)
    found = BatchSearch(system, tokens, {"sequences": 1}).many_sets()
    assert searches == [["sequences"], ["sets"]]
    np.testing.assert_array_equal(found.labels, expected.labels)


def thresholds_of(tagger):
    return Thresholds(0.4, np.full(len(tagger.labels), 0.3))


def test_rules_choose_together_what_they_choose_one_by_one(tagger, tokens):
    limits, thresholds = no_limits(len(tagger.labels)), thresholds_of(tagger)
    rules = [rule for rule in RULES if RULES[rule].source == "sets"]
    search = BatchSearch(tagger.system, tokens, {"sets": MANY_SETS})
    together = search.choose_all(dict.fromkeys(rules, limits), thresholds)
    for rule in rules:
        alone = search.choose(rule, limits, thresholds)
        np.testing.assert_array_equal(together[rule].labels, alone.labels)
        np.testing.assert_allclose(together[rule].log_probs, alone.log_probs, rtol=1e-5)
        expected = tagger.system.for_rule(rule).set_log_probs(tokens, alone.labels[:, None])[:, 0]
        is_candidate = alone.choice.candidates.ranks(alone.labels) >= 0
        np.testing.assert_allclose(
            alone.log_probs[~is_candidate], expected[~is_candidate], rtol=1e-5
        )


def test_the_choice_for_some_documents_is_the_same_among_them_alone(tagger, tokens):
    limits, thresholds = no_limits(len(tagger.labels)), thresholds_of(tagger)
    search, rows = BatchSearch(tagger.system, tokens, {"sets": MANY_SETS}), np.arange(1, 20, 3)
    some = search.take(rows)
    for rule in (each for each in RULES if RULES[each].source == "sets"):
        of_all, found = (each.choose(rule, limits, thresholds) for each in (search, some))
        width = found.labels.shape[1]
        np.testing.assert_array_equal(of_all.labels[rows, :width], found.labels)
        np.testing.assert_allclose(of_all.log_probs[rows], found.log_probs, rtol=1e-5)


def test_a_system_is_asked_once_for_the_sets_of_all_rules_and_the_given_ones(
    tagger, tokens, monkeypatch
):
    members = getattr(tagger.system, "systems", (tagger.system,))
    asked = []
    for kind in {type(each) for each in members}:
        ask = kind.set_log_probs

        def counted(self, tokens, label_sets, ask=ask):
            asked.append(id(self))
            return ask(self, tokens, label_sets)

        monkeypatch.setattr(kind, "set_log_probs", counted)
    rules = [rule for rule in RULES if RULES[rule].source == "sets"]
    search = BatchSearch(tagger.system, tokens, {"sets": MANY_SETS})
    asked.clear()  # members of a mixture score the sets of others
    given = Question(NO_RULE, np.arange(len(tokens)), np.zeros((len(tokens), 1), dtype=np.int32))
    limits = no_limits(len(tagger.labels))
    search.choose_all(dict.fromkeys(rules, limits), thresholds_of(tagger), [given])
    assert sorted(asked) == sorted(map(id, members))
    expected = tagger.system.set_log_probs(tokens, given.labels[:, None])[:, 0]
    np.testing.assert_allclose(given.log_probs, expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["seq2seq-rnn", "sgm", "set-rnn", "set-rnn-exact"])
def test_sources_searched_together_have_the_bits_of_those_searched_one_by_one(
    taggers, tokens, name
):
    system = taggers[name].system
    for n_sets in ({"sets": MANY_SETS, "sequences": 1}, {"sequences": MANY_SETS, "sets": 1}):
        found = BatchSearch(system, tokens, n_sets).candidates
        for source, n in n_sets.items():
            alone = system.candidates(tokens, n, source)
            np.testing.assert_array_equal(found[source].labels, alone.labels)
            np.testing.assert_array_equal(found[source].log_probs, alone.log_probs)
            assert (found[source].label_probs is None) == (n < MANY_SETS)
            if n >= MANY_SETS:
                np.testing.assert_array_equal(found[source].label_probs, alone.label_probs)


def test_the_distinct_sets_of_each_document_are_grouped():
    random = np.random.default_rng(0)
    rows = random.integers(0, 6, 40)
    sets = pack_labels(random.integers(-1, 3, (40, 2)).astype(np.int32))
    sets[sets[:, 0] == sets[:, 1], 1] = -1  # a set has a label once
    documents, label_sets, row, column = group_sets(rows, sets)
    np.testing.assert_array_equal(documents[row], rows)
    np.testing.assert_array_equal(label_sets[row, column], sets)
    for number, document in enumerate(documents):
        distinct = {tuple(each) for each in sets[rows == document]}
        n_places = len({tuple(each) for each in zip(row, column, strict=True) if each[0] == number})
        assert n_places == len(distinct)
