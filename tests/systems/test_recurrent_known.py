"""A recurrent system with labels known beforehand, against brute force over all sets."""

import numpy as np
import pytest
from test_recurrent import EVERY_DECODER, TOKENS, assert_same_candidates, found_sets, make_system

from brute_force_sequences import TEXTS, batch_of, set_log_probs
from setrnn.data.batches import take_rows
from setrnn.errors import ConfigError, DataError
from setrnn.systems import neural as neural_system
from setrnn.systems.known import Known, given_known, known_log_prob

KNOWN = Known.of([(1, 3), (), (2,), ()], [(0,), (), (), (2, 0)])


def fits(labels, document):
    present, absent = (
        set(row[row >= 0]) for row in (KNOWN.present[document], KNOWN.absent[document])
    )
    return labels >= present and not labels & absent


@EVERY_DECODER
def test_candidates_are_the_sets_that_fit_with_the_probability_of_each(decoder):
    system = make_system(decoder)
    truth = set_log_probs(system.network.decoder, system.network.encode(batch_of()))
    candidates = system.candidates(TOKENS, 16, known=KNOWN)
    for document in range(len(TEXTS)):
        expected = {k: float(p[document]) for k, p in truth.items() if fits(k, document)}
        found = found_sets(candidates, document)
        assert found == pytest.approx(expected, abs=1e-4)
        assert next(iter(found)) == max(expected, key=expected.get)
        total = sum(map(np.exp, expected.values()))
        assert np.exp(known_log_prob(candidates)[document]) == pytest.approx(total, abs=1e-4)
        given = {k: np.exp(p) for k, p in found_sets(given_known(candidates), document).items()}
        shares = {k: np.exp(p) / total for k, p in expected.items()}
        assert given == pytest.approx(shares, abs=1e-4)


def test_knowing_nothing_changes_nothing():
    system = make_system(beam_width=6)
    for source in ("sets", "sequences"):
        expected = system.candidates(TOKENS, 6, source)
        found = system.candidates(TOKENS, 6, source, Known.nothing(len(TOKENS)))
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.log_probs, expected.log_probs)


@pytest.mark.parametrize("beam_width", [1, 6])
def test_how_documents_are_batched_and_ordered_changes_nothing(beam_width, monkeypatch):
    system = make_system(beam_width=beam_width)
    together = system.candidates(TOKENS, 6, known=KNOWN)
    unknown = system.candidates(TOKENS, 6)
    assert list(found_sets(together, 1)) == list(found_sets(unknown, 1)), "nothing is known of it"
    monkeypatch.setattr(neural_system, "MAX_DOCUMENTS_ON_CPU", 1)
    assert_same_candidates(system.candidates(TOKENS, 6, known=KNOWN), together)
    monkeypatch.undo()
    order = np.array([2, 0, 3, 1, 0])
    shuffled = system.candidates(take_rows(TOKENS, order), 6, known=KNOWN.rows(order))
    for place, document in enumerate(order):
        assert list(found_sets(shuffled, place)) == list(found_sets(together, document))


def test_sequences_are_not_completed():
    with pytest.raises(ConfigError, match="Use rule 'set'"):
        make_system(beam_width=2).candidates(TOKENS, 2, "sequences", KNOWN)


def test_more_present_labels_than_a_set_may_have_are_refused():
    system = make_system(beam_width=2, max_labels=1)
    with pytest.raises(DataError, match=r"Document 0: 2 labels .* at most 1"):
        system.candidates(TOKENS, 2, known=KNOWN)
