import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit

from setrnn.systems.candidates import SetCandidates, log_sigmoid, pack_labels, to_probability

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


@given(arrays(np.float64, 5, elements=st.floats(-1e4, 1e4)))
def test_the_log_of_the_sigmoid_is_finite_and_right(logits):
    result = log_sigmoid(logits)
    assert np.isfinite(result).all()
    assert (result <= 0).all()
    np.testing.assert_allclose(np.exp(result), expit(logits), atol=1e-12)
    np.testing.assert_allclose(np.exp(result) + np.exp(log_sigmoid(-logits)), 1, atol=1e-12)


documents_with_chances = st.lists(
    st.dictionaries(st.frozensets(st.integers(0, 4)), st.floats(0.001, 1), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


def as_candidates(documents):
    """Documents of {set: p} as candidates, as many for each; padded with -inf."""
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


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_no_documents_candidates_or_labels_have_marginals_of_zero(shape):
    nothing = SetCandidates(np.zeros(shape, dtype=np.int32), np.zeros(shape[:2]))
    marginals = nothing.marginals(4)
    assert marginals.shape == (shape[0], 4)
    assert not marginals.any()


@given(documents_with_chances, st.lists(st.integers(0, 5), max_size=3, unique=True))
def test_labels_and_sizes_are_summed_over_the_sets(documents, also):
    found = as_candidates(documents).label_size_probs(6, also)
    for row, chances in enumerate(documents):
        total = sum(chances.values())
        assert found.empty[row] == pytest.approx(chances.get(frozenset(), 0) / total)
        labels = found.labels[row][found.labels[row] >= 0].tolist()
        assert labels == sorted({*also, *(label for members in chances for label in members)})
        for place, label in enumerate(labels):
            for size in range(1, found.probs.shape[2] + 1):
                share = sum(p for s, p in chances.items() if label in s and len(s) == size) / total
                assert found.probs[row, place, size - 1] == pytest.approx(share)
        assert not found.probs[row, len(labels) :].any()


@given(documents_with_chances)
def test_log_probs_are_found_among_the_candidates_or_not_known(documents):
    candidates = as_candidates(documents)
    asked = np.array([[[0, -1], [1, 3], [-1, -1]]] * len(documents), dtype=np.int32)
    found = candidates.log_probs_of(asked)
    for row, chances in enumerate(documents):
        for column, members in enumerate([frozenset({0}), frozenset({1, 3}), frozenset()]):
            if members in chances:
                assert np.exp(found[row, column]) == pytest.approx(chances[members])
            else:
                assert np.isnan(found[row, column])
    rows = np.array([len(documents) - 1])
    np.testing.assert_array_equal(candidates.take(rows).log_probs_of(asked[:1]), found[rows])


def test_ranks_find_the_candidate_that_a_set_is():
    labels = np.array([[[0, 2], [1, -1], [-1, -1]]] * 5, dtype=np.int32)
    log_probs = np.log([[0.5, 0.3, 0.1]] * 4 + [[0.5, 0.3, 1.0]])
    log_probs[4, 2] = -np.inf  # not the empty set: there are two candidates only
    candidates = SetCandidates(labels, log_probs)
    sets = [[0, 2, -1], [1, -1, -1], [-1, -1, -1], [0, 1, 2], [-1, -1, -1]]
    assert candidates.ranks(np.array(sets, dtype=np.int32)).tolist() == [0, 1, 2, -1, -1]
    narrow = np.array([[1], [-1], [0], [2], [1]], dtype=np.int32)
    assert candidates.ranks(narrow).tolist() == [1, 2, -1, -1, 1]


def test_joined_batches_have_the_sets_of_each():
    labels = [np.array([[[0, 2], [1, -1]]]), np.array([[[1], [-1], [2]], [[0], [1], [2]]])]
    log_probs = [np.log([[0.5, 0.3]]), np.log([[0.4, 0.2, 0.1], [0.6, 0.2, 0.1]])]
    parts = [SetCandidates(a.astype(np.int32), b) for a, b in zip(labels, log_probs, strict=True)]
    joined = SetCandidates.concatenate(parts)
    assert joined.labels.shape == (3, 3, 2)
    assert joined.log_probs[0].tolist() == [*log_probs[0][0], -np.inf]
    assert [joined.set_at(row, 0) for row in range(3)] == [[0, 2], [1], [0]]
    np.testing.assert_array_equal(joined.log_probs[1:], log_probs[1])
    assert SetCandidates.concatenate(parts, min_sets=5).labels.shape == (3, 5, 2)


def test_certificates_are_joined_if_all_batches_have_them():
    labels, log_probs = np.zeros((1, 1, 1), dtype=np.int32), np.zeros((1, 1))
    with_one, without = (
        SetCandidates(labels, log_probs, **each)
        for each in ({"is_proved": np.array([True]), "pruned": np.array([0.25])}, {})
    )
    joined = SetCandidates.concatenate([with_one, with_one]).take(np.array([1]))
    assert joined.is_proved.tolist() == [True]
    assert joined.pruned.tolist() == [0.25]
    assert SetCandidates.concatenate([with_one, without]).is_proved is None


def test_rounding_errors_do_not_make_a_probability_exceed_one():
    assert to_probability(1e-7) == 1.0
    assert to_probability(-np.inf) == 0.0
    assert to_probability(np.log(0.3)) == pytest.approx(0.3)
