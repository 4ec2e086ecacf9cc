"""The contract of the classical systems, on documents."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from setrnn.config import ClassicalSettings, Config, ModelSettings, TextSettings
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.data.ragged import Ragged
from setrnn.errors import SetRNNError
from setrnn.methods import METHODS
from setrnn.systems.classical.features import indicator
from setrnn.systems.classical.logistic import fit_logistic
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.classical.system import LinearWeights, TrainingData
from setrnn.systems.registry import SYSTEMS
from setrnn.tagging.tagger import Tagger
from setrnn.training.start import TrainOptions, train_system
from tiny import TINY

CLASSICAL = {name: SYSTEMS[name] for name in ("br", "br-support", "pcc")}
EVERY_SYSTEM = pytest.mark.parametrize("system_class", CLASSICAL.values(), ids=CLASSICAL)
QUICK = Config(classical=ClassicalSettings(max_steps=5, beam_width=7))


def prepared_from(folder, examples):
    settings = TextSettings(min_count=1)
    return prepare({"train": partial(iter, examples)}, folder, "small", settings, {})


def check_answers(system, tokens, n_labels):
    """What any answer must be."""
    candidates = system.candidates(tokens, 3)
    assert len(candidates) == len(tokens)
    assert np.isfinite(candidates.log_probs[:, 0]).all()
    assert (candidates.log_probs <= 1e-9).all()
    assert candidates.labels.max(initial=-1) < n_labels
    marginals = system.marginals(tokens)
    assert marginals.shape == (len(tokens), n_labels)
    assert marginals.dtype == np.float32
    assert ((marginals >= 0) & (marginals <= 1)).all()


@EVERY_SYSTEM
def test_a_system_learns_its_training_documents(system_class, small_prepared):
    """A wide margin over guessing: more than half of all label sets are right."""
    done = []
    config = Config(classical=ClassicalSettings(l1=0.01, l2=0.01))
    system = system_class.train(small_prepared, config, done.append)
    train = small_prepared.split("train")
    candidates = system.candidates(train.tokens, 1)
    n_right = sum(candidates.set_at(i, 0) == train.labels[i].tolist() for i in range(len(train)))
    assert n_right > 0.5 * len(train)
    check_answers(system, train.tokens, len(small_prepared.labels))
    assert done[-1].n_done == done[-1].n_total == len(small_prepared.labels)


def test_sparse_and_dense_products_have_the_same_bits():
    rng = np.random.default_rng(0)
    dense = (rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.1)).astype(np.float32)
    intercepts = rng.normal(size=40).astype(np.float32)
    features = sp.random(50, 300, 0.2, "csr", dtype=np.float32, rng=rng)
    linear = LinearWeights(dense, intercepts)
    assert sp.issparse(linear.weights)
    np.testing.assert_array_equal(linear.logits(features), features @ dense + intercepts)
    full = LinearWeights(dense + 1, intercepts)
    assert full.arrays()["weights"].shape == dense.shape
    np.testing.assert_array_equal(full.logits(features), features @ (dense + 1) + intercepts)


@EVERY_SYSTEM
@pytest.mark.parametrize(
    "label_sets",
    [
        [("a",), ("a",), ("a",)],
        [("a",), (), ("a", "b")],
        [("a",), ("b",), ()],
        [("a", "b", "c"), ("a", "b", "c"), ("a", "b", "c")],
        [(), (), ()],
    ],
    ids=["always", "nested", "one each", "all the same", "none"],
)
def test_odd_label_sets_are_learned_and_answered(system_class, tmp_path, label_sets):
    texts = ["rain cup", "", "budget"]
    examples = [
        Example(str(i), t, s) for i, (t, s) in enumerate(zip(texts, label_sets, strict=True))
    ]
    prepared = prepared_from(tmp_path / "p", examples)
    system = system_class.train(prepared, Config())
    check_answers(system, prepared.encoder.encode(["rain", "", "unheard of"]), len(prepared.labels))
    if not any(label_sets):  # the empty set is certain
        found = system.candidates(prepared.encoder.encode(["rain"]), 2)
        assert found.set_at(0, 0) == []
        np.testing.assert_allclose(found.log_probs[0, 0], 0)


@EVERY_SYSTEM
def test_texts_without_a_known_word_are_answered_from_the_frequencies(system_class, tmp_path):
    examples = [Example(str(i), "", ("a",) if i % 4 else ()) for i in range(40)]
    prepared = prepared_from(tmp_path / "p", examples)
    settings = ClassicalSettings(tolerance=1e-9)
    system = system_class.train(prepared, Config(classical=settings))
    marginals = system.marginals(prepared.encoder.encode(["", "anything"]))
    np.testing.assert_allclose(marginals, 0.75, atol=1e-3)


@EVERY_SYSTEM
def test_training_on_no_documents_is_refused_in_our_words(system_class, tmp_path):
    with pytest.raises(SetRNNError) as error:
        system_class.train(prepared_from(tmp_path / "p", []), Config())
    assert "\n" not in str(error.value)


# The chain.


def test_a_chain_is_logistic_regression_on_words_and_earlier_labels():
    generator = np.random.default_rng(0)
    features = sp.csr_matrix(np.abs(generator.normal(size=(60, 10))).astype(np.float32))
    label_sets = [np.flatnonzero(generator.random(18) < 0.3).tolist() for _ in range(60)]
    fine = ClassicalSettings(l1=0.1, l2=0.1, max_steps=1000, tolerance=1e-9)
    data = TrainingData(features, Ragged.from_lists(label_sets), 18, fine)
    model = ClassifierChain.fit(None, data)
    assert not np.tril(model.chain).any(), "a label looks at none but those before it"
    targets = indicator(data.label_sets, 18)
    for label in (0, 1, 4, 17):
        seen = sp.hstack([data.features, targets[:, :label]], "csr").astype(float)
        own = sp.csr_matrix(model.linear.weights).toarray()[:, label]
        own = np.concatenate([own, model.chain[:label, label]])
        alone, intercepts = fit_logistic(seen.astype(np.float32), targets[:, [label]], fine)
        is_true = targets[:, [label]].toarray().ravel()

        def loss(weights, intercept, seen=seen, is_true=is_true):
            logits = seen @ weights.astype(float) + float(intercept)
            error = (np.logaddexp(0, logits) - is_true * logits).sum()
            return error + 0.1 * np.abs(weights).sum() + 0.05 * np.square(weights).sum()

        expected = loss(alone[:, 0], intercepts[0])
        assert loss(own, model.linear.intercepts[label]) == pytest.approx(expected, rel=1e-4)


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
    pairs = zip(corpus.truth.values(), tagger.tag(list(corpus.truth)), strict=True)
    return np.mean([truth.get(frozenset(found.labels), 0) for truth, found in pairs])


def test_where_whole_sets_exclude_each_other_pcc_is_right_and_br_never(tmp_path):
    corpus = TINY["exclusive"]
    pcc, br = (tiny_tagger(name, corpus, tmp_path / name) for name in ("pcc", "br"))
    assert expected_accuracy(br, corpus) == 0
    best = np.mean([max(distribution.values()) for distribution in corpus.truth.values()])
    assert expected_accuracy(pcc, corpus) > 0.9 * best


@pytest.mark.parametrize("method", CLASSICAL)
def test_where_labels_are_independent_every_system_finds_the_truth(method, tmp_path):
    truth = TINY["independent"].truth
    predictions = tiny_tagger(method, TINY["independent"], tmp_path).tag(list(truth))
    for distribution, prediction in zip(truth.values(), predictions, strict=True):
        wanted = max(distribution, key=distribution.get)
        assert frozenset(prediction.labels) == wanted
        assert prediction.probability == pytest.approx(distribution[wanted], abs=0.06)
