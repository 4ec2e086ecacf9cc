import numpy as np

from setrnn.systems.candidates import SetCandidates
from setrnn.systems.known import Known, given_known, known_log_prob, make_completions

KNOWN = Known.of([[1, 3], [], [2]], [[0], [1, 2], []])


def test_known_labels_are_padded_marked_and_taken_by_row():
    assert KNOWN.present.tolist() == [[1, 3], [-1, -1], [2, -1]]
    assert KNOWN.is_present(4).tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert KNOWN.is_absent(4).tolist() == [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    assert KNOWN.take(np.array([2, 0])).present.tolist() == [[2, -1], [1, 3]]
    assert KNOWN.take(slice(1, 2)).absent.tolist() == [[1, 2]]
    assert not KNOWN.is_nothing
    assert Known.of([()] * 3, [()] * 3).is_nothing


def test_where_no_set_fits_the_present_labels_stand_alone_with_probability_0():
    labels = np.array([[[4, -1], [1, -1]], [[0, 3], [2, -1]], [[1, -1], [2, -1]]], dtype=np.int32)
    log_probs = np.array([[-np.inf, -np.inf], [-1.0, -np.inf], [-np.inf, -np.inf]])
    found = make_completions(SetCandidates(labels, log_probs), KNOWN)
    assert [found.set_at(document, 0) for document in range(3)] == [[1, 3], [0, 3], [2]]
    assert all(found.set_at(document, 1) == [] for document in range(3))
    np.testing.assert_array_equal(found.log_probs, log_probs)


def test_given_what_is_known_the_sets_found_share_all_of_it():
    labels = np.array([[[0, 1], [1, -1], [-1, -1]]] * 2, dtype=np.int32)
    log_probs = np.array([[np.log(0.3), np.log(0.1), -np.inf], [-np.inf] * 3])
    candidates = SetCandidates(labels, log_probs)
    np.testing.assert_allclose(np.exp(known_log_prob(candidates)), [0.4, 0.0])
    given = given_known(candidates)
    np.testing.assert_allclose(np.exp(given.log_probs), [[0.75, 0.25, 0.0], [0.0] * 3])
