import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brute_force import found_sets, identity_weights, product_probability, sigmoid
from setrnn.config import ClassicalSettings
from setrnn.data.ragged import Ragged
from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.classical.br_support import SupportInference
from setrnn.systems.classical.system import TrainingData

N_LABELS = 6
logits_of_documents = arrays(np.float32, (3, N_LABELS), elements=st.floats(-8, 8, width=32))
supports = st.sets(
    st.sets(st.integers(0, N_LABELS - 1), max_size=N_LABELS).map(sorted).map(tuple),
    min_size=1,
    max_size=12,
).map(sorted)


def model_of(logits, support):
    linear, documents = identity_weights(logits)
    return SupportInference(BinaryRelevance(linear), Ragged.from_lists(support)), documents


def truth_of(logits, support):
    """The product over ALL labels, over the sets of the support, made to sum to 1."""
    products = {labels: product_probability(logits, labels) for labels in support}
    total = sum(products.values())
    return {labels: product / total for labels, product in products.items()}


@given(logits_of_documents, supports, st.integers(1, 15))
@settings(deadline=None)
def test_the_best_sets_are_those_of_brute_force(logits, support, n_sets):
    model, documents = model_of(logits, support)
    candidates = model.candidates(documents, n_sets)
    for document in range(len(logits)):
        truth = truth_of(logits[document], support)
        found = found_sets(candidates, document)
        assert len(found) == min(n_sets, len(support))
        for labels, probability in found.items():
            assert probability == pytest.approx(truth[labels], rel=1e-4)
        best = sorted(truth.values(), reverse=True)[: len(found)]
        np.testing.assert_allclose(list(found.values()), best, rtol=1e-4)


@given(logits_of_documents, supports)
@settings(deadline=None)
def test_marginals_are_those_of_br_or_the_sums_of_brute_force(logits, support):
    model, documents = model_of(logits, support)
    marginals = model.candidates(documents, 1).marginals(model.n_labels)
    for document in range(len(logits)):
        truth = truth_of(logits[document], support)
        larger = [
            max(
                sigmoid(logits[document][label]),
                sum(p for labels, p in truth.items() if label in labels),
            )
            for label in range(N_LABELS)
        ]
        np.testing.assert_allclose(marginals[document], larger, atol=1e-5)


def test_log_odds_beyond_the_range_of_exp_stay_finite():
    model, documents = model_of([[900.0, -900.0, 800.0, 0, 0, 0]], [(), (0, 2), (1,)])
    assert np.isfinite(model.log_probs(documents)).all()
    assert model.candidates(documents, 3).set_at(0, 0) == [0, 2]


def test_a_support_of_the_empty_set_alone_is_legal():
    model, documents = model_of(np.ones((1, N_LABELS)), [()])
    assert found_sets(model.candidates(documents, 2), 0) == {(): pytest.approx(1)}


def test_the_support_is_the_distinct_sets_of_training():
    label_sets = [[0, 1], [], [0], [0, 1], [], [2]]
    features = sp.identity(6, dtype=np.float32, format="csr")
    data = TrainingData(features, Ragged.from_lists(label_sets), 3)
    model = SupportInference.fit(data, ClassicalSettings())
    assert [row.tolist() for row in model.support] == [[0, 1], [], [0], [2]]
    br = BinaryRelevance.fit(data, ClassicalSettings())
    for name, array in br.arrays().items():
        np.testing.assert_array_equal(model.br.arrays()[name], array)


def test_only_seen_sets_are_ever_predicted(taggers, small_examples, test_texts):
    seen = {frozenset(example.labels) for example in small_examples["train"]}
    for prediction in taggers["br-support"].tag(test_texts, top=5):
        assert frozenset(prediction.labels) in seen
        assert all(frozenset(other.labels) in seen for other in prediction.alternatives)
