from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse as sp

from setrnn.config import ClassicalSettings, Config, TextSettings
from setrnn.data.example import Example
from setrnn.data.preparing import prepare
from setrnn.errors import DataError, SetRNNError
from setrnn.metrics import evaluate_label_sets
from setrnn.systems.classical import CLASSICAL
from setrnn.systems.classical import system as classical_system
from setrnn.systems.classical.system import (
    GRID,
    ClassicalSystem,
    LinearWeights,
    make_training_data,
    tune_penalties,
)
from setrnn.systems.empty_set import fit_empty_set

EVERY_BASELINE = pytest.mark.parametrize("system_class", CLASSICAL.values(), ids=CLASSICAL)
MODELS = {name: system.model_class for name, system in CLASSICAL.items()}
EVERY_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
QUICK = ClassicalSettings(max_steps=5, beam_width=7)


def prepared_from(folder, examples, **changes):
    settings = TextSettings(min_count=1, **changes)
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


@EVERY_BASELINE
def test_a_system_learns_its_training_documents(system_class, small_prepared):
    """A wide margin over guessing: more than half of all label sets are right."""
    system = system_class.train(
        small_prepared, Config(classical=ClassicalSettings(l1=0.01, l2=0.01))
    )
    train = small_prepared.split("train")
    candidates = system.candidates(train.tokens, 1)
    n_right = sum(candidates.set_at(i, 0) == train.labels[i].tolist() for i in range(len(train)))
    assert n_right > 0.5 * len(train)
    check_answers(system, train.tokens, len(small_prepared.labels))


@pytest.fixture(scope="module")
def trained(small_prepared):
    """Train a system once for all tests of the default settings."""
    return cache(lambda system_class: system_class.train(small_prepared, Config()))


@EVERY_BASELINE
def test_training_twice_gives_the_same_bits(system_class, small_prepared, trained):
    first = trained(system_class).arrays()
    second = system_class.train(small_prepared, Config()).arrays()
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(second[name], array)


@EVERY_BASELINE
def test_weights_that_are_mostly_zero_are_kept_sparse(system_class, trained, small_prepared):
    system = trained(system_class)
    weights = system.model.linear.weights
    assert sp.issparse(weights)
    arrays = system.arrays()
    assert arrays["weights"].size == np.count_nonzero(arrays["weights"])
    assert len(arrays["weight_labels"]) == len(arrays["weights"]) == weights.nnz


def test_sparse_and_dense_products_have_the_same_bits():
    rng = np.random.default_rng(0)
    dense = (rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.1)).astype(np.float32)
    intercepts = rng.normal(size=40).astype(np.float32)
    features = sp.random(50, 300, 0.2, "csr", dtype=np.float32, rng=rng)
    linear = LinearWeights(dense, intercepts)
    assert sp.issparse(linear.weights)
    np.testing.assert_array_equal(linear.logits(features), features @ dense + intercepts)
    full = LinearWeights(dense + 1, intercepts)
    assert not sp.issparse(full.weights)
    assert full.arrays()["weights"].shape == dense.shape
    np.testing.assert_array_equal(full.logits(features), features @ (dense + 1) + intercepts)


def test_training_data_holds_the_labels_of_train(small_prepared, small_examples):
    tfidf, data = make_training_data(small_prepared, ClassicalSettings())
    names = small_prepared.labels.names
    assert data.n_labels == len(names)
    assert [{names[label] for label in row} for row in data.label_sets] == [
        set(example.labels) for example in small_examples["train"]
    ]
    n_features = small_prepared.encoder.n_tokens + len(tfidf.pairs)
    assert data.features.shape == (300, n_features)
    assert len(tfidf.idf) == n_features


@EVERY_BASELINE
@pytest.mark.parametrize(
    "label_sets",
    [
        [("a",), ("a",), ("a",)],
        [("a",), (), ("a", "b")],
        [("a",), ("b",), ()],
        [("a", "b", "c"), ("a", "b", "c"), ("a", "b", "c")],
    ],
    ids=["always", "nested", "one each", "all the same"],
)
def test_odd_label_sets_are_learned_and_answered(system_class, tmp_path, label_sets):
    texts = ["rain cup", "", "budget"]
    examples = [
        Example(str(i), t, s) for i, (t, s) in enumerate(zip(texts, label_sets, strict=True))
    ]
    prepared = prepared_from(tmp_path / "p", examples)
    system = system_class.train(prepared, Config())
    check_answers(system, prepared.encoder.encode(["rain", "", "unheard of"]), len(prepared.labels))


@EVERY_BASELINE
def test_texts_without_a_known_word_are_answered_from_the_frequencies(system_class, tmp_path):
    examples = [Example(str(i), "", ("a",) if i % 4 else ()) for i in range(40)]
    prepared = prepared_from(tmp_path / "p", examples)
    settings = ClassicalSettings(tolerance=1e-9)
    system = system_class.train(prepared, Config(classical=settings))
    marginals = system.marginals(prepared.encoder.encode(["", "anything"]))
    np.testing.assert_allclose(marginals, 0.75, atol=1e-3)


@EVERY_BASELINE
def test_training_on_no_documents_is_refused_in_our_words(system_class, tmp_path):
    with pytest.raises(SetRNNError) as error:
        system_class.train(prepared_from(tmp_path / "p", []), Config(classical=ClassicalSettings()))
    assert "\n" not in str(error.value)


@EVERY_BASELINE
def test_without_a_label_the_empty_set_is_certain(system_class, tmp_path):
    prepared = prepared_from(tmp_path / "p", [Example("1", "rain"), Example("2", "cup")])
    system = system_class.train(prepared, Config())
    candidates = system.candidates(prepared.encoder.encode(["rain"]), 2)
    assert candidates.set_at(0, 0) == []
    np.testing.assert_allclose(candidates.log_probs[0, 0], 0)


@EVERY_BASELINE
def test_every_label_is_reported_as_done(system_class, small_prepared):
    done = []
    config = Config(classical=ClassicalSettings(max_steps=1))
    system_class.train(small_prepared, config, done.append)
    assert done[-1].n_done == done[-1].n_total == len(small_prepared.labels)


@pytest.fixture
def few(monkeypatch):
    """Three trials, of which the middle one learns something."""
    grid = ((50.0, 50.0), (0.05, 0.05), (200.0, 0.0))
    monkeypatch.setattr(classical_system, "GRID", grid)
    return grid


def sum_of_f1(model, prepared, settings):
    """The same measure by another way: predicted sets of names."""
    tfidf, data = make_training_data(prepared, settings)
    fitted = model.fit(data, settings, lambda n_labels: None)
    valid = prepared.split("valid")
    system = fit_empty_set(ClassicalSystem(tfidf, fitted), prepared, "auto")
    candidates = system.candidates(valid.tokens, 1)
    names = prepared.labels.names
    scores = evaluate_label_sets(
        [tuple(names[i] for i in row if i < len(names)) for row in valid.labels],
        [tuple(names[i] for i in candidates.set_at(j, 0)) for j in range(len(valid))],
        names,
    )
    return scores.instance_f1 + scores.label_f1 + scores.micro_f1


@EVERY_MODEL
def test_the_chosen_penalties_are_the_best_of_the_grid(model, small_prepared, few):
    chosen = tune_penalties(model, small_prepared, QUICK)
    sums = [sum_of_f1(model, small_prepared, replace(QUICK, l1=l1, l2=l2)) for l1, l2 in few]
    assert (chosen.l1, chosen.l2) == few[int(np.argmax(sums))]
    assert max(sums) > min(sums), "the trials must differ for this to mean anything"


@EVERY_MODEL
def test_every_point_of_the_grid_is_tried_once_and_scored(model, small_prepared, few):
    trials = []
    tune_penalties(
        model, small_prepared, QUICK, lambda l1, l2, scores: trials.append((l1, l2, scores))
    )
    assert [(l1, l2) for l1, l2, _ in trials] == list(few)
    for l1, l2, scores in trials:
        expected = sum_of_f1(model, small_prepared, replace(QUICK, l1=l1, l2=l2))
        assert scores.instance_f1 + scores.label_f1 + scores.micro_f1 == pytest.approx(expected)


def test_the_grid_holds_the_default_and_is_valid():
    assert (ClassicalSettings().l1, ClassicalSettings().l2) in GRID
    assert len(set(GRID)) == len(GRID)
    for l1, l2 in GRID:
        ClassicalSettings(l1=l1, l2=l2)


@EVERY_MODEL
def test_without_a_valid_part_tuning_is_refused(model, small_examples, tmp_path):
    streams = {"train": partial(iter, small_examples["train"])}
    prepared = prepare(streams, tmp_path / "p", "newsroom", TextSettings(), {})
    with pytest.raises(DataError, match="valid"):
        tune_penalties(model, prepared, QUICK)
