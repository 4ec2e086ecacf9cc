from functools import partial

import numpy as np
import pytest

from setrnn.config import ClassicalSettings, Config, TextSettings
from setrnn.data import prepared as prepare_module
from setrnn.data.example import Example
from setrnn.data.prepared import prepare
from setrnn.errors import SetRNNError
from setrnn.methods import METHODS
from setrnn.systems.classical import CLASSICAL
from setrnn.systems.classical.system import training_data

EVERY_BASELINE = pytest.mark.parametrize("system_class", CLASSICAL.values(), ids=CLASSICAL)


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


@EVERY_BASELINE
def test_training_twice_gives_the_same_bits(system_class, small_prepared):
    first, second = (system_class.train(small_prepared, Config()).arrays() for _ in range(2))
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(second[name], array)


@EVERY_BASELINE
def test_arrays_rebuild_the_same_system(system_class, small_prepared):
    system = system_class.train(small_prepared, Config())
    again = system_class.from_arrays(system.arrays(), METHODS["br"], Config(), "cpu")
    tokens = small_prepared.split("test").tokens
    np.testing.assert_array_equal(again.marginals(tokens), system.marginals(tokens))
    before, after = system.candidates(tokens, 5), again.candidates(tokens, 5)
    np.testing.assert_array_equal(after.labels, before.labels)
    np.testing.assert_array_equal(after.log_probs, before.log_probs)


def test_training_data_holds_the_labels_of_train(small_prepared, small_examples):
    tfidf, data = training_data(small_prepared, ClassicalSettings())
    names = small_prepared.labels.names
    assert data.n_labels == len(names)
    assert [{names[label] for label in row} for row in data.label_sets] == [
        set(example.labels) for example in small_examples["train"]
    ]
    n_features = small_prepared.encoder.n_tokens + len(tfidf.pairs)
    assert data.features.shape == (300, n_features)
    assert len(tfidf.idf) == n_features


@EVERY_BASELINE
def test_token_ids_of_four_bytes_make_no_difference(
    system_class, small_prepared, small_examples, tmp_path, monkeypatch
):
    """What a vocabulary of more than 65,536 words brings."""
    monkeypatch.setattr(prepare_module, "smallest_dtype", lambda n_values: np.dtype(np.int32))
    streams = {name: partial(iter, examples) for name, examples in small_examples.items()}
    wide = prepare(streams, tmp_path / "wide", "newsroom", TextSettings(), {})
    assert wide.split("train").tokens.values.dtype == np.int32
    expected = system_class.train(small_prepared, Config()).arrays()
    for name, array in system_class.train(wide, Config()).arrays().items():
        np.testing.assert_array_equal(array, expected[name])


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
def test_a_single_document_is_enough(system_class, tmp_path):
    prepared = prepared_from(tmp_path / "p", [Example("1", "rain", ("a", "b"))])
    system = system_class.train(prepared, Config())
    candidates = system.candidates(prepared.encoder.encode(["rain"]), 1)
    assert candidates.set_at(0, 0) == [0, 1]


@EVERY_BASELINE
def test_texts_without_a_known_word_are_answered_from_the_frequencies(system_class, tmp_path):
    examples = [Example(str(i), "", ("a",) if i % 4 else ()) for i in range(40)]
    prepared = prepared_from(tmp_path / "p", examples)
    settings = ClassicalSettings(tolerance=1e-9)
    system = system_class.train(prepared, Config(classical=settings))
    marginals = system.marginals(prepared.encoder.encode(["", "anything"]))
    np.testing.assert_allclose(marginals, 0.75, atol=1e-3)


@EVERY_BASELINE
def test_no_documents_get_no_answers(system_class, small_prepared):
    system = system_class.train(small_prepared, Config(classical=ClassicalSettings(max_steps=1)))
    check_answers(system, small_prepared.encoder.encode([]), len(small_prepared.labels))


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
