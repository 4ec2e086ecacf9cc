from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brute_force import all_sets, found_sets, identity_weights, sigmoid
from setrnn.config import ClassicalSettings, Config, ModelSettings, TextSettings
from setrnn.data.preparing import prepare
from setrnn.data.ragged import Ragged
from setrnn.methods import METHODS
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.classical.system import TrainingData
from setrnn.tagging.tagger import Tagger
from setrnn.training.start import TrainOptions, train_system
from tiny import TINY

weight = st.floats(-5, 5, width=32)
chains = st.integers(1, 5).flatmap(
    lambda n_labels: st.tuples(
        arrays(np.float32, (2, n_labels), elements=weight),
        arrays(np.float32, (n_labels, n_labels), elements=weight).map(partial(np.triu, k=1)),
    )
)


def model_of(logits, chain, beam_width):
    linear, documents = identity_weights(logits)
    return ClassifierChain(linear, np.asarray(chain, dtype=np.float32), beam_width), documents


def chain_probability(logits, chain, labels):
    """Multiply p(y_l | x, y_1 .. y_{l-1}), one label after the other."""
    probability = 1.0
    for label, logit in enumerate(np.asarray(logits, dtype=float)):
        log_odds = logit + sum(
            float(chain[earlier, label]) for earlier in labels if earlier < label
        )
        probability *= sigmoid(log_odds) if label in labels else sigmoid(-log_odds)
    return probability


@given(chains, st.integers(1, 40))
@settings(deadline=None)
def test_a_beam_as_wide_as_the_space_equals_brute_force(problem, n_sets):
    logits, chain = problem
    n_labels = logits.shape[1]
    model, documents = model_of(logits, chain, beam_width=2**n_labels)
    candidates = model.candidates(documents, n_sets)
    for document in range(len(logits)):
        truth = {
            labels: chain_probability(logits[document], chain, labels)
            for labels in all_sets(n_labels)
        }
        assert sum(truth.values()) == pytest.approx(1)
        found = found_sets(candidates, document)
        assert len(found) == 2**n_labels  # all of the beam
        for labels, probability in found.items():
            assert probability == pytest.approx(truth[labels], rel=1e-4)
        best = sorted(truth.values(), reverse=True)[: len(found)]
        np.testing.assert_allclose(list(found.values()), best, rtol=1e-4)


@given(chains, st.integers(1, 6), st.integers(1, 6))
@settings(deadline=None)
def test_a_narrow_beam_gives_exact_probabilities_of_what_it_finds(problem, beam_width, n_sets):
    logits, chain = problem
    model, documents = model_of(logits, chain, beam_width)
    candidates = model.candidates(documents, n_sets)
    for document in range(len(logits)):
        found = found_sets(candidates, document)
        assert 1 <= len(found) <= beam_width
        for labels, probability in found.items():
            truth = chain_probability(logits[document], chain, labels)
            assert probability == pytest.approx(truth, rel=1e-4)


@given(chains)
@settings(deadline=None)
def test_marginals_with_a_full_beam_equal_brute_force(problem):
    logits, chain = problem
    n_labels = logits.shape[1]
    model, documents = model_of(logits, chain, beam_width=2**n_labels)
    marginals = model.candidates(documents, 1).marginals(model.n_labels)
    for document in range(len(logits)):
        sums = [
            sum(
                chain_probability(logits[document], chain, labels)
                for labels in all_sets(n_labels)
                if label in labels
            )
            for label in range(n_labels)
        ]
        np.testing.assert_allclose(marginals[document], sums, atol=1e-5)


def test_without_links_the_chain_is_binary_relevance():
    from setrnn.systems.classical.br import BinaryRelevance

    logits = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
    model, documents = model_of(logits, np.zeros((6, 6)), beam_width=64)
    linear, _ = identity_weights(logits)
    expected = BinaryRelevance(linear).candidates(documents, 64)
    found = model.candidates(documents, 64)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-5)
    np.testing.assert_array_equal(found.labels[:, 0], expected.labels[:, 0])


def test_sets_of_many_labels_fit_in_a_beam():
    """More labels in a set than any power of two of columns; the widest and the empty set."""
    n_labels = 21
    logits = np.stack([np.full(n_labels, 3.0), np.full(n_labels, -3.0)])
    model, documents = model_of(logits, np.zeros((n_labels, n_labels)), beam_width=3)
    candidates = model.candidates(documents, 3)
    assert candidates.set_at(0, 0) == list(range(n_labels))
    assert candidates.set_at(1, 0) == []


def test_how_many_sets_are_asked_for_does_not_change_the_best():
    """A beam of one takes the first label; a wider one finds the better set without it."""
    logits, chain = [[0.2, 6.0]], [[0.0, -6.0], [0.0, 0.0]]
    model, documents = model_of(logits, chain, beam_width=1)
    best = {
        n_sets: (tuple(found.set_at(0, 0)), float(found.log_probs[0, 0]))
        for n_sets in (1, 2, 4)
        for found in [model.candidates(documents, n_sets)]
    }
    assert len(set(best.values())) == 1


def make_training_data(n=60, n_labels=18, seed=0):
    generator = np.random.default_rng(seed)
    features = sp.csr_matrix(np.abs(generator.normal(size=(n, 10))).astype(np.float32))
    label_sets = [np.flatnonzero(generator.random(n_labels) < 0.3).tolist() for _ in range(n)]
    return TrainingData(features, Ragged.from_lists(label_sets), n_labels)


def test_a_label_never_looks_at_itself_or_at_later_ones():
    model = ClassifierChain.fit(make_training_data(), ClassicalSettings(l1=0.01))
    assert model.chain.shape == (18, 18)
    assert (np.tril(model.chain) == 0).all()
    assert (np.triu(model.chain, 1) != 0).any()


def test_training_is_logistic_regression_on_words_and_earlier_labels():
    from setrnn.systems.classical.features import indicator
    from setrnn.systems.classical.logistic import Penalties, fit_logistic

    data = make_training_data(n_labels=5)
    fine = ClassicalSettings(l1=0.1, l2=0.1, max_steps=1000, tolerance=1e-9)
    model = ClassifierChain.fit(data, fine)
    targets = indicator(data.label_sets, 5)
    for label in range(5):
        seen = sp.hstack([data.features, targets[:, :label]], "csr")
        weights, intercepts = fit_logistic(
            seen, targets[:, [label]], Penalties(0.1, 0.1), max_steps=1000, tolerance=1e-9
        )
        np.testing.assert_allclose(
            sp.csr_matrix(model.linear.weights).toarray()[:, label], weights[:10, 0], atol=5e-3
        )
        np.testing.assert_allclose(model.chain[:label, label], weights[10:, 0], atol=5e-3)
        np.testing.assert_allclose(model.linear.intercepts[label], intercepts[0], atol=5e-3)


def test_the_chain_runs_by_falling_frequency(taggers, small_examples):
    counts = taggers["pcc"].labels.counts
    assert list(counts) == sorted(counts, reverse=True)
    chain = taggers["pcc"].system.arrays()["chain"]
    assert (np.tril(chain) == 0).all()


def tiny_tagger(method, corpus, folder):
    """Train with hardly any penalty: the aim is the optimum of the model itself."""
    examples = corpus.sample(3000, seed=1)
    text = TextSettings(min_count=1, stop_words="none")
    prepared = prepare({"train": lambda: iter(examples)}, folder, "tiny", text, {})
    classical = ClassicalSettings(l1=1e-3, l2=1e-3, max_pairs=0, max_steps=300, tolerance=1e-6)
    config = Config(text=text, classical=classical, model=ModelSettings(empty_sets="on"))
    trained = train_system(METHODS[method], prepared, config, TrainOptions())
    return Tagger(method, config, prepared.encoder, prepared.labels, trained.system)


def expected_accuracy(tagger, corpus):
    """The share of documents whose whole set is right, in the long run."""
    predictions = tagger.tag(list(corpus.truth))
    return np.mean(
        [
            distribution.get(frozenset(prediction.labels), 0)
            for distribution, prediction in zip(corpus.truth.values(), predictions, strict=True)
        ]
    )


def test_where_whole_sets_exclude_each_other_pcc_is_right_and_br_never(tmp_path):
    corpus = TINY["exclusive"]
    pcc = tiny_tagger("pcc", corpus, tmp_path / "pcc")
    br = tiny_tagger("br", corpus, tmp_path / "br")
    assert expected_accuracy(br, corpus) == 0
    best = np.mean([max(distribution.values()) for distribution in corpus.truth.values()])
    assert expected_accuracy(pcc, corpus) > 0.9 * best


def test_where_labels_are_independent_all_three_find_the_truth(tmp_path):
    truth = TINY["independent"].truth
    texts = list(truth)
    for method in ("br", "br-support", "pcc"):
        predictions = tiny_tagger(method, TINY["independent"], tmp_path / method).tag(texts)
        for text, prediction in zip(texts, predictions, strict=True):
            wanted = max(truth[text], key=truth[text].get)
            assert frozenset(prediction.labels) == wanted
            assert prediction.probability == pytest.approx(truth[text][wanted], abs=0.06)
