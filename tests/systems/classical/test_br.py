import numpy as np
import scipy.sparse as sp

from brute_force import found_sets, identity_weights
from setrnn.config import ClassicalSettings
from setrnn.data.ragged import Ragged
from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.classical.system import TrainingData


def test_the_best_set_takes_every_label_above_one_half():
    logits = np.random.default_rng(1).normal(size=(20, 30)).astype(np.float32)
    linear, documents = identity_weights(logits)
    model = BinaryRelevance(linear)
    marginals = model.candidates(documents, 1).marginals(model.n_labels)
    candidates = model.candidates(documents, 1)
    for document in range(20):
        assert candidates.set_at(document, 0) == np.flatnonzero(marginals[document] > 0.5).tolist()


def test_marginals_are_the_sums_over_all_sets():
    logits = np.random.default_rng(2).normal(size=(4, 5)).astype(np.float32)
    linear, documents = identity_weights(logits)
    model = BinaryRelevance(linear)
    candidates = model.candidates(documents, 32)
    for document in range(4):
        found = found_sets(candidates, document)
        sums = [sum(p for labels, p in found.items() if label in labels) for label in range(5)]
        np.testing.assert_allclose(
            model.candidates(documents, 1).marginals(model.n_labels)[document], sums, atol=1e-6
        )


def test_labels_are_learned_from_their_words():
    words = np.stack([np.arange(40) % 2, np.arange(40) // 2 % 2], axis=1)
    label_sets = Ragged.from_lists([np.flatnonzero(row).tolist() for row in words])
    features = sp.csr_matrix(words.astype(np.float32))
    model = BinaryRelevance.fit(TrainingData(features, label_sets, 2), ClassicalSettings())
    candidates = model.candidates(features, 1)
    assert [candidates.set_at(i, 0) for i in range(40)] == [row.tolist() for row in label_sets]


def test_arrays_rebuild_the_same_model():
    linear, documents = identity_weights(np.random.default_rng(3).normal(size=(4, 5)))
    model = BinaryRelevance(linear)
    again = BinaryRelevance.from_arrays(model.arrays())
    np.testing.assert_array_equal(
        again.candidates(documents, 1).marginals(again.n_labels),
        model.candidates(documents, 1).marginals(model.n_labels),
    )
