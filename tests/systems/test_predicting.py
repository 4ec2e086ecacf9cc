import numpy as np
import pytest

from setrnn.systems.limits import no_limits
from setrnn.systems.predicting import BatchSearch
from setrnn.systems.rules import MANY_SETS, RULES, count_candidates, find_rule


@pytest.fixture
def tokens(small_prepared):
    return small_prepared.split("test").tokens.rows(0, 20)


def counted(system, monkeypatch):
    """Count the searches of a system by their source."""
    searches, search = [], type(system).candidates

    def candidates(self, tokens, n_sets, source="sets", known=None):
        searches.append(source)
        return search(self, tokens, n_sets, source, known)

    monkeypatch.setattr(type(system), "candidates", candidates)
    return searches


def test_all_rules_of_a_source_share_one_search(taggers, tokens, monkeypatch):
    system = taggers["seq2seq-rnn"].system
    searches = counted(system, monkeypatch)
    search = BatchSearch(system, tokens, {"sets": MANY_SETS, "sequences": 1})
    limits = no_limits(len(taggers["seq2seq-rnn"].labels))
    for name in ("set", "f1", "hamming", "sequence"):
        search.choose(name, limits)
    search.many_sets()
    assert searches == ["sets", "sequences"]
    assert set(search.seconds) == {"sets", "sequences"}


def test_marginals_are_searched_for_if_only_sequences_were(taggers, tokens, monkeypatch):
    system = taggers["seq2seq-rnn"].system
    expected = system.candidates(tokens, MANY_SETS)
    searches = counted(system, monkeypatch)
    found = BatchSearch(system, tokens, {"sequences": 1}).many_sets()
    assert searches == ["sequences", "sets"]
    np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize("rule", [name for name in RULES if not RULES[name].needs_thresholds])
def test_the_chosen_sets_are_those_the_tagger_predicts(tagger, tokens, rule):
    chosen_rule = find_rule(rule)
    if rule not in tagger.rules:
        pytest.skip("the system emits no sequences")
    limits = no_limits(len(tagger.labels))
    n_sets = count_candidates(chosen_rule, 1, limits)
    search = BatchSearch(tagger.system, tokens, {chosen_rule.source: n_sets})
    chosen = search.choose(rule, limits)
    for row, log_prob, prediction in zip(
        chosen.labels, chosen.log_probs, tagger.tag_tokens(tokens, rule), strict=True
    ):
        names = tuple(tagger.labels.names[label] for label in row if label >= 0)
        assert names == prediction.labels
        assert np.exp(log_prob) == prediction.probability
