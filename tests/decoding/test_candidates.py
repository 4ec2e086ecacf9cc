import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit

from setrnn.decoding import RULES, find_rule
from setrnn.decoding.candidates import SetCandidates, log_sigmoid, pack_labels
from setrnn.errors import ConfigError

one_set = st.sets(st.integers(0, 9), max_size=4)


@given(st.lists(st.lists(one_set, min_size=2, max_size=2), min_size=1, max_size=4), st.randoms())
def test_packing_keeps_every_set_ascending_with_nothing_to_spare(documents, random):
    loose = np.full((len(documents), 2, 7), -1, dtype=np.int32)
    for row, sets in enumerate(documents):
        for rank, labels in enumerate(sets):
            places = random.sample(range(7), len(labels))
            loose[row, rank, places] = list(labels)
    packed = pack_labels(loose)
    candidates = SetCandidates(packed, np.zeros((len(documents), 2)))
    for row, sets in enumerate(documents):
        for rank, labels in enumerate(sets):
            assert candidates.set_at(row, rank) == sorted(labels)
    largest = max(len(labels) for sets in documents for labels in sets)
    assert packed.shape[-1] == max(largest, 1)
    assert (np.diff((packed >= 0).astype(int), axis=-1) <= 0).all(), "-1 must come last"


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (0, 0, 1)])
def test_nothing_can_be_packed(shape):
    assert pack_labels(np.zeros(shape, dtype=np.int32)).shape[:2] == shape[:2]


@given(arrays(np.float64, 5, elements=st.floats(-1e4, 1e4)))
def test_the_log_of_the_sigmoid_is_finite_and_right(logits):
    result = log_sigmoid(logits)
    assert np.isfinite(result).all()
    assert (result <= 0).all()
    np.testing.assert_allclose(np.exp(result), expit(logits), atol=1e-12)
    np.testing.assert_allclose(np.exp(result) + np.exp(log_sigmoid(-logits)), 1, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_predicts_one_set_for_each_document(name):
    labels = np.array([[[0, 2], [1, -1]], [[-1, -1], [0, -1]]], dtype=np.int32)
    log_probs = np.log([[0.6, 0.4], [0.9, 0.1]])
    rule = find_rule(name)
    assert rule.source in ("sets", "sequences")
    chosen, chosen_log_probs = rule.choose(SetCandidates(labels, log_probs))
    assert len(chosen) == len(chosen_log_probs) == 2
    assert (chosen_log_probs <= 0).all()


@pytest.mark.parametrize(("name", "source"), [("set", "sets"), ("sequence", "sequences")])
def test_the_rules_of_the_paper_take_the_most_probable_of_their_source(name, source):
    labels = np.array([[[0, 2], [1, -1]]], dtype=np.int32)
    rule = find_rule(name)
    chosen, log_probs = rule.choose(SetCandidates(labels, np.log([[0.6, 0.4]])))
    assert rule.source == source
    assert chosen.tolist() == [[0, 2]]
    np.testing.assert_allclose(np.exp(log_probs), [0.6])


def test_an_unknown_rule_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'set'"):
        find_rule("sett")


documents_with_chances = st.lists(
    st.dictionaries(st.frozensets(st.integers(0, 4)), st.floats(0.001, 1), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


def as_candidates(documents):
    """Documents of {set: p} as candidates, as many for each; -inf fills up."""
    K = max(map(len, documents))
    labels = np.full((len(documents), K, 5), -1, dtype=np.int32)
    log_probs = np.full((len(documents), K), -np.inf)
    for row, chances in enumerate(documents):
        by_falling = sorted(chances.items(), key=lambda pair: -pair[1])
        for rank, (members, p) in enumerate(by_falling):
            labels[row, rank, : len(members)] = sorted(members)
            log_probs[row, rank] = np.log(p)
    return SetCandidates(labels, log_probs)


@given(documents_with_chances, st.sampled_from([0.0, -800.0]))
def test_marginals_are_the_share_of_the_sets_that_hold_the_label(documents, shift):
    """However small the candidates' probabilities are; exp(-800) is 0."""
    candidates = as_candidates(documents)
    shifted = SetCandidates(candidates.labels, candidates.log_probs + shift)
    marginals = shifted.marginals(6)
    assert marginals.shape == (len(documents), 6)
    for row, chances in enumerate(documents):
        total = sum(chances.values())
        for label in range(6):
            share = sum(p for members, p in chances.items() if label in members) / total
            assert marginals[row, label] == pytest.approx(share, abs=1e-5)


def test_documents_without_candidates_have_no_labels():
    labels = np.array([[[0, 1], [2, -1]], [[0, 1], [1, -1]]], dtype=np.int32)
    log_probs = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    marginals = SetCandidates(labels, log_probs).marginals(3)
    assert marginals.tolist() == [[0, 0, 0], [1, 1, 0]]


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_no_documents_candidates_or_labels_have_marginals_of_zero(shape):
    nothing = SetCandidates(np.zeros(shape, dtype=np.int32), np.zeros(shape[:2]))
    marginals = nothing.marginals(4)
    assert marginals.shape == (shape[0], 4)
    assert not marginals.any()


def test_ranks_find_the_candidate_that_a_set_is():
    labels = np.array([[[0, 2], [1, -1], [-1, -1]]] * 5, dtype=np.int32)
    log_probs = np.log([[0.5, 0.3, 0.1]] * 4 + [[0.5, 0.3, 1.0]])
    log_probs[4, 2] = -np.inf  # not the empty set: there are two candidates only
    candidates = SetCandidates(labels, log_probs)
    sets = [[0, 2, -1], [1, -1, -1], [-1, -1, -1], [0, 1, 2], [-1, -1, -1]]
    assert candidates.ranks(np.array(sets, dtype=np.int32)).tolist() == [0, 1, 2, -1, -1]
    narrow = np.array([[1], [-1], [0], [2], [1]], dtype=np.int32)
    assert candidates.ranks(narrow).tolist() == [1, 2, -1, -1, 1]
